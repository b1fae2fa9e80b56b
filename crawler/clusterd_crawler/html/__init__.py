"""HTML as a browser reads it, from bytes to visible text and what of that is main text: the parts of `text`."""
