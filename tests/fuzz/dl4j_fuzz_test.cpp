#include "tests/fuzz/check.h"

namespace muster::fuzz {

TEST_CASE("fuzzing: models of Deeplearning4j") {
  check(targets::dl4j, 400);
}

}  // namespace muster::fuzz
