"""What is asked of the index on Redis: `questions` is what it answers, the others are how each is found."""
