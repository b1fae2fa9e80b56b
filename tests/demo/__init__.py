"""``make demo``: a small web site that behaves like real ones, crawled twice, without clusterd and with it."""
