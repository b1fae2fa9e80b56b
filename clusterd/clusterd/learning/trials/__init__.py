"""What the evidence says about an edit, and in which context it holds: pages that agree, pages that differ."""
