"""`make test-quick FILES=...`: the tests that changed files are likeliest to break, in three minutes."""
