"""One host's fetched pages, in columns: what every judgement about its URLs is made from."""
