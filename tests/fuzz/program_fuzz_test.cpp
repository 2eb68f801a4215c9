// The fuzzers of checkpoints, command lines, run files and results without their engine.
#include "tests/fuzz/check.h"

MUSTER_FUZZ_CASE("checkpoints", checkpoint, 50)
MUSTER_FUZZ_CASE("command lines", command_line, 4000)
MUSTER_FUZZ_CASE("run files of the program muster", run_file, 500)
MUSTER_FUZZ_CASE("results of muster compare", results, 2000)
