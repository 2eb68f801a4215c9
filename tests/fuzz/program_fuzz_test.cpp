// The fuzzers of checkpoints, command lines and run files without their engine.
#include "tests/fuzz/check.h"

namespace muster::fuzz {

TEST_CASE("checkpoints") {
  check(targets::checkpoint, 50);
}

TEST_CASE("command lines") {
  check(targets::command_line, 2000);
}

TEST_CASE("run files of the program muster") {
  check(targets::run_file, 500);
}

}  // namespace muster::fuzz
