"""The daemon's room: matches become clusters, clusters become alerts and rules; questions are answered."""
