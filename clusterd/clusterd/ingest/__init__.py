"""Other ways in than a crawl: WARC files, JSON lines, folders of HTML; through the same sketches and messages."""
