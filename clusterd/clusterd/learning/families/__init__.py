"""Families of URLs of which every further page shows what other pages have shown."""
