"""The commands of the command line, one file each; `protocon.cli` lists them."""
