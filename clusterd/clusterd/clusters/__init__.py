"""Clusters that stay right while pages come, change and go. The contract is `contract.Index`."""
