"""What is promised about speed and accuracy, measured beside the peers in the same run."""
