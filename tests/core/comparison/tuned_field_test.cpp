#include "muster/core/comparison/tuned_field.h"

#include "tests/support/test.h"

namespace muster {
namespace {

using Texts = std::vector<std::string>;

TEST_CASE("a field to tune is read with its values, of which equal numbers are the same") {
  const auto field = TunedField::of("learningRate=0.01,1e-1");
  CHECK(field.name == "learningRate");
  CHECK(field.values == Texts{"0.01", "1e-1"});
  CHECK(field.text() == "learningRate=0.01,1e-1");
  CHECK(field.has("0.10"));
  CHECK_FALSE(field.has("0.1x"));
  CHECK(TunedField::of(" learningRate = 0.01, 1e-1 ").text() == field.text());
  CHECK(TunedField::of("updater=sgd,adam").has("adam"));
  CHECK(TunedField::of("learningRate").values.empty());
}

TEST_CASE(
    "values join those of the same fields, in any order of the fields, and of other fields they do not") {
  const Texts before{"rate=1,2", "batch=8"};
  CHECK(joinTuning(before, Texts{"batch=8,16", "rate=3,2.0"}) == Texts{"rate=1,2,3", "batch=8,16"});
  CHECK(joinTuning(before, before) == before);
  const Texts twice{"rate=0.1,0.10", "batch=8"};
  CHECK(joinTuning(twice, twice) == Texts{"rate=0.1", "batch=8"});
  CHECK_FALSE(joinTuning(before, Texts{"rate=1,2"}));
  CHECK_FALSE(joinTuning(before, Texts{"rate=1,2", "l2=0,1"}));
  CHECK_FALSE(joinTuning({}, before));
}

}  // namespace
}  // namespace muster
