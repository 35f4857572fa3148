"""Planted faults: wrong patches of pybridge, each of which a part of `make test` must find.

`python -m tests.planted` applies each in a copy of the checkout, runs its part, and names the test that
failed. A patch begins with a sentence that says what is wrong and a line that names its part.
"""
