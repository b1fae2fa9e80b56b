"""Earlier ways to learn (or to know) which URLs are one page, on the same splits and by the same measures as ours."""
