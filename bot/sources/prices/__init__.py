"""Fresh cloud prices: sources behind one port, checked row by row, swapped in whole or not at all."""
