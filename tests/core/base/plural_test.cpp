#include "muster/core/base/plural.h"

#include "tests/support/test.h"

namespace muster {

TEST_CASE("a noun after 1 is singular, after other numbers plural") {
  CHECK(plural(0, "epoch") == "0 epochs");
  CHECK(plural(1, "epoch") == "1 epoch");
  CHECK(plural(std::uint64_t{2}, "epoch") == "2 epochs");
  CHECK(plural(1, "batch", "batches") == "1 batch");
  CHECK(plural(std::int64_t{-1}, "batch", "batches") == "-1 batches");
}

}  // namespace muster
