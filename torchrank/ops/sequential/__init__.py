"""Compiled CPU loops that step through users one after the other, on a model's own float32 arrays."""
