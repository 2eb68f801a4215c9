// The bits of a training depend neither on the program's rounding mode nor on its OpenMP settings.
#include "muster/core/device/arithmetic_scope.h"

#include <doctest/doctest.h>
#include <omp.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cfenv>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
#include "tests/support/state_bits.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Rounds up, and on x86 flushes subnormal numbers to zero.
class OtherArithmetic {
 public:
  OtherArithmetic() {
    std::fegetenv(&before_);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  }
  ~OtherArithmetic() {
    std::fesetenv(&before_);
  }
  OtherArithmetic(const OtherArithmetic&) = delete;
  OtherArithmetic& operator=(const OtherArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

/// Half of the smallest normal number; 0 if subnormal numbers are flushed.
float halfOfSmallest() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest / 2;
}

/// 1/3 rounded to nearest is below 1/3.
bool roundsToNearest() {
  volatile double one = 1, three = 3;
  return one / three == 0x1.5555555555555p-2;
}

MultiLayerNetwork network(Context* context = nullptr) {
  MultiLayerNetwork made(
      {.seed = 1,
       .inputShape = {1, 28, 28},
       .layers = {Dense{.units = 24, .activation = Activation::Tanh}, Output{.classes = 10}}},
      context);
  made.init();
  return made;
}

}  // namespace

TEST_CASE("within its scope arithmetic is the default, on all threads of a team, and afterwards as before") {
  const OtherArithmetic other;
  REQUIRE_FALSE(roundsToNearest());
  {
    const ArithmeticScope scope(3);
    int wrong = 0;
#pragma omp parallel num_threads(3) reduction(+ : wrong)
    wrong += roundsToNearest() && halfOfSmallest() > 0 ? 0 : 1;
    CHECK(wrong == 0);
    bool started = false;
    std::thread([&] { started = roundsToNearest() && halfOfSmallest() > 0; }).join();
    CHECK(started);
  }
  CHECK_FALSE(roundsToNearest());
#if defined(__x86_64__)
  CHECK(halfOfSmallest() == 0);
#endif
}

TEST_CASE("a program that rounds up trains to the same bits") {
  for (const int workers : {0, 2}) {  // 0: model.fit
    CAPTURE(workers);
    const auto trained = [&](bool roundsUp) {
      GeneratedDigitsIterator data(16, 96, 1, true);
      auto model = network();
      std::optional<OtherArithmetic> other;
      if (roundsUp) other.emplace();
      workers == 0 ? model.fit(data) : toyWrapper(model, workers, 2).build().fit(data);
      CHECK(roundsToNearest() == !roundsUp);
      return stateBits(model);
    };
    CHECK(trained(true) == trained(false));
  }
}

TEST_CASE("a program that lets OpenMP choose its teams trains to the same bits") {
  const auto trained = [](bool dynamic) {
    omp_set_dynamic(dynamic ? 1 : 0);
    GeneratedDigitsIterator data(16, 96, 1, true);
    Context context(Device::cpu(), {.threads = 3});
    auto model = network(&context);
    model.fit(data);
    CHECK(omp_get_dynamic() == (dynamic ? 1 : 0));
    omp_set_dynamic(0);
    return stateBits(model);
  };
  CHECK(trained(true) == trained(false));
}

TEST_CASE("a context whose teams OpenMP limits is refused" *
          doctest::skip(std::getenv("OMP_THREAD_LIMIT") == nullptr)) {
  CHECK(
      thrown<InvalidArgument>([] { const Context context(Device::cpu(), {.threads = 4}); }) ==
      "context: 4 threads were asked for, but OpenMP starts 2: see OMP_THREAD_LIMIT; fewer threads and more "
      "workers use as many cores");
  CHECK_NOTHROW(Context(Device::cpu(), {.threads = 2}));
}

TEST_CASE("limits of the environment are found in another process") {
  if (std::getenv("OMP_THREAD_LIMIT") != nullptr) return;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  CHECK(std::system(
            ("OMP_THREAD_LIMIT=2 " + self + " -m -tc='a context whose teams*' > /dev/null").c_str()) == 0);
  CHECK(std::system(("OMP_DYNAMIC=true OMP_MAX_ACTIVE_LEVELS=0 " + self +
                     " -m -tc='a program that lets OpenMP*,within its scope*' > /dev/null")
                        .c_str()) == 0);
}
