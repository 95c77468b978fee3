"""A trial while it runs: shown on a page or in a terminal, and steered from there."""
