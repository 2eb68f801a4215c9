#include <type_traits>

#include "muster/core/nn/network.h"
#include "tests/support/one_block_model.h"
#include "tests/support/test.h"

// A program that says `using namespace muster` has names of its own, which are not ambiguous with those of
// the base classes of Model and Network, also in a model of its own.

using namespace muster;

namespace {

struct Predictor {
  int value = 1;
};
struct TrainingCounters : Predictor {};
struct AttachedState : Predictor {};
struct DescribedNetwork : Predictor {};

constexpr int Iteration = 2, Epoch = 3, UpdaterBegan = 4;
int number() {
  return 5;
}

class UsersModel : public test::OneBlockModel {
 public:
  static int sum() { return Iteration + Epoch + UpdaterBegan + number(); }
};

template <typename T>
constexpr bool kCopied = std::is_copy_constructible_v<T> || std::is_copy_assignable_v<T>;

}  // namespace

TEST_CASE("names of a program are not those of the base classes of Model and Network") {
  CHECK(Predictor().value + TrainingCounters().value + AttachedState().value + DescribedNetwork().value == 4);
  CHECK(UsersModel::sum() == 14);
}

TEST_CASE("the base classes of a model are neither copied nor destroyed by themselves") {
  CHECK_FALSE(kCopied<detail::TrainingCounters>);
  CHECK_FALSE(kCopied<detail::AttachedState>);
  CHECK_FALSE(std::is_destructible_v<detail::TrainingCounters>);
  CHECK_FALSE(std::is_destructible_v<detail::AttachedState>);
}
