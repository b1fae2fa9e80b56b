"""What is compiled, in C: text → sketch, markup → marked text. `compiled` loads it, or says that there is none."""
