"""Code shared by several families of algorithms."""
