// The bits of a training depend neither on the program's rounding mode nor on its OpenMP settings.
#include "muster/core/device/arithmetic_scope.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cfenv>
#include <cstdlib>

#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/generated_digits.h"
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

MultiLayerConfiguration configuration() {
  return {.seed = 1,
          .inputShape = {1, 28, 28},
          .layers = {Dense{.units = 24, .activation = Activation::Tanh}, Output{.classes = 10}}};
}

/// Every bit of a model that two workers of three threads have trained, as text.
std::string trainedWithTeams() {
  GeneratedDigitsIterator data(16, 96, 1, true);
  MultiLayerNetwork model(configuration());
  toyWrapper(model, 2).threadsPerWorker(3).build().fit(data);
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::byte bits : stateBits(model))
    hash = (hash ^ static_cast<std::uint64_t>(bits)) * 1099511628211u;
  return std::to_string(hash);
}

bool isChild() {
  return std::getenv("MUSTER_TEST_BITS") != nullptr;
}

/// Runs a test case in another process with these variables. @return whether it passed.
bool passes(const std::string& variables, const std::string& testCase) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = variables + " '" + self + "' -m -tc='" + testCase + "' > /dev/null";
  return std::system(command.c_str()) == 0;
}

}  // namespace

TEST_CASE("within its scope arithmetic is the default, on all threads of a team, and afterwards as before") {
  const OtherArithmetic other;
  REQUIRE_FALSE(roundsToNearest());
  {
    const ArithmeticScope scope(3);
    int right = 0;
#pragma omp parallel num_threads(3) reduction(+ : right)
    right += roundsToNearest() && halfOfSmallest() > 0 ? 1 : 0;
    CHECK(right == 3);
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
      MultiLayerNetwork model(configuration());
      std::optional<OtherArithmetic> other;
      if (roundsUp) other.emplace();
      workers == 0 ? model.fit(data) : toyWrapper(model, workers, 2).build().fit(data);
      CHECK(roundsToNearest() == !roundsUp);
      return stateBits(model);
    };
    CHECK(trained(true) == trained(false));
  }
}

TEST_CASE("child: a context whose teams OpenMP limits to two threads" * doctest::skip(!isChild())) {
  CHECK(
      thrown<InvalidArgument>([] { const Context context(Device::cpu(), {.threads = 4}); }) ==
      "context: 4 threads were asked for, but OpenMP starts 2: see OMP_THREAD_LIMIT; fewer threads and more "
      "workers use as many cores");
  CHECK_NOTHROW(Context(Device::cpu(), {.threads = 2}));
}

TEST_CASE("child: the same bits" * doctest::skip(!isChild())) {
  CHECK(trainedWithTeams() == std::getenv("MUSTER_TEST_BITS"));
}

TEST_CASE("the environment's OpenMP settings change no bit, or are refused" * doctest::skip(isChild())) {
  const std::string bits = "MUSTER_TEST_BITS=" + trainedWithTeams() + " ";
  CHECK(passes(bits + "OMP_DYNAMIC=true OMP_MAX_ACTIVE_LEVELS=0", "child: the same bits"));
  CHECK(passes(bits + "OMP_DYNAMIC=true OMP_MAX_ACTIVE_LEVELS=0", "within its scope*"));
  CHECK(passes(bits + "OMP_THREAD_LIMIT=2", "child: a context whose teams*"));
}
