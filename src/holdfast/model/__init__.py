"""What things are: pure values, the transition table and the graph, with no I/O at all."""
