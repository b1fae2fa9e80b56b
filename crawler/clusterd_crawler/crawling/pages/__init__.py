"""What a crawl has fetched: pages become messages, wait for their verdicts, and are known once the spider has them.

`responses` tells whole pages from others. `gathered` takes those of a moment together, `reporter` sketches and
publishes them. `verdicts` waits for what the daemon says, while `download_places` lends the page's place among the
downloads to another, and `near_duplicates` tells the spider. `unread` holds a page until the spider has been given it;
`item_files` knows the files that its items name. `redirected` and `rewritten` say what it means for the URL that was
asked for.
"""
