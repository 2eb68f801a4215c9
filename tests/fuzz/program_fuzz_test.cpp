// The fuzzers of checkpoints, command lines, run files and results without their engine.
#include "tests/fuzz/check.h"

namespace muster::fuzz {

TEST_CASE("fuzzing: checkpoints") {
  check(targets::checkpoint, 50);
}

TEST_CASE("fuzzing: command lines") {
  check(targets::command_line, 4000);
}

TEST_CASE("fuzzing: run files of the program muster") {
  check(targets::run_file, 500);
}

TEST_CASE("fuzzing: results of muster compare") {
  check(targets::results, 2000);
}

}  // namespace muster::fuzz
