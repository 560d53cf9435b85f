"""The settings become the files of a VM: pure, from values to texts; ``deploy.prepare`` writes them."""
