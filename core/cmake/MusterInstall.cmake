# install and export: filled in by the packaging work
