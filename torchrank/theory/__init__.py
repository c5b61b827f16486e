"""The theorems behind the library, one function each."""

# one name a line, sorted
__all__: list[str] = []
