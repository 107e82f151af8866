"""From paths, archives and standard input to lines and binaries, within a budget."""
