// The fuzzers of checkpoints and command lines without their engine.
#include "tests/fuzz/check.h"

namespace muster::fuzz {

TEST_CASE("checkpoints") {
  check(targets::checkpoint, 50);
}

TEST_CASE("command lines") {
  check(targets::command_line, 2000);
}

}  // namespace muster::fuzz
