"""The settings become the files of a VM: pure, from values to texts; ``appliance.prepare`` writes them."""
