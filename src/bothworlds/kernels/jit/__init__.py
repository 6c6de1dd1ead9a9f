"""How kernel text is compiled: machine code on disk, and packs of numbers for the compiler."""
