#include "muster/core/optim/schedule.h"

#include "tests/core/optim/golden.h"
#include "tests/support/json_text.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

const std::map<std::string_view, Schedule> kSchedules{
    {"fixed", 0.05},
    {"step", StepSchedule{.initial = 0.2, .decay = 0.5, .every = 3}},
    {"exponential", ExponentialSchedule{.initial = 0.2, .decay = 0.75}},
    {"cosine", CosineSchedule{.initial = 0.2, .final = 0.02, .iterations = 8}},
    {"warmup", WarmUpSchedule{.iterations = 4, .then = 0.1}},
    {"warmup cosine",
     WarmUpSchedule{.iterations = 3, .then = CosineSchedule{.initial = 0.2, .final = 0.02, .iterations = 8}}},
};

/// Falls by one in each epoch: a user-defined schedule.
struct EpochSchedule {
  static constexpr std::string_view kType = "epoch";
  double initial = 5;
  double at(std::int64_t, std::int64_t epoch) const { return initial - static_cast<double>(epoch); }
  void fields(Fields& f) { f.field("initial", initial); }
  void validate() const {}
};

}  // namespace

TEST_CASE("schedules have the values of the independent script") {
  for (const auto& golden : kGoldenRates) {
    INFO("schedule ", golden.schedule, ", iteration ", golden.iteration);
    const double value = kSchedules.at(golden.schedule).at(golden.iteration);
    CHECK(std::abs(value - golden.value) <= 1e-15);
  }
}

TEST_CASE("a schedule written and read back is the same schedule, its type and options named") {
  for (const auto& [name, schedule] : kSchedules) {
    CAPTURE(name);
    const auto text = jsonOf(schedule);
    const auto again = fromJson<Schedule>(text, 123.0);
    CHECK(again.type() == schedule.type());
    CHECK(jsonOf(again) == text);
    for (std::int64_t i = 0; i < 12; ++i) CHECK(again.at(i) == schedule.at(i));
  }
  CHECK_CONTAINS(
      jsonOf(kSchedules.at("warmup cosine")),
      R"({"type": "warmup", "iterations": 3, "epochs": 0, "then": {"type": "cosine", "initial": 0.2, "final": 0.02)");
}

TEST_CASE("reading a type that does not exist names those that do") {
  CHECK_REFUSED(fromJson<Schedule>(R"({"it": {"type": "steps"}})"),
                "it: schedule: there is no type \"steps\"; there are cosine, exponential, fixed, step, "
                "warmup; the nearest is step");
}

TEST_CASE("a user-defined schedule can be used, and read after it is registered") {
  const Schedule schedule = EpochSchedule{.initial = 3};
  CHECK(schedule.at(100, 2) == 1);
  Schedule::registry().add(EpochSchedule::kType,
                           [] { return std::make_unique<muster::detail::ScheduleOf<EpochSchedule>>(); });
  CHECK(fromJson<Schedule>(jsonOf(schedule)).at(0, 1) == 2);
}

TEST_CASE("copies of a schedule are independent") {
  Schedule first = StepSchedule{.initial = 1, .decay = 0.5, .every = 1};
  const Schedule second = first;
  first = 7.0;
  CHECK(first.at(3) == 7);
  CHECK(second.at(3) == 0.125);
}

TEST_CASE("schedules over epochs do not depend on the iteration") {
  const Schedule step = StepSchedule{.initial = 0.8, .decay = 0.5, .epochs = 2};
  const Schedule decay = ExponentialSchedule{.initial = 0.8, .decay = 0.5, .epochs = 1};
  const Schedule slow = ExponentialSchedule{.initial = 0.8, .decay = 0.25, .epochs = 2};
  const Schedule cosine = CosineSchedule{.initial = 0.3, .final = 0.1, .epochs = 4};
  const Schedule warmUp = WarmUpSchedule{.epochs = 2, .then = StepSchedule{.initial = 0.8, .epochs = 3}};
  for (const std::int64_t iteration : {0, 7, 100000}) {
    CHECK(step.at(iteration, 1) == 0.8);
    CHECK(step.at(iteration, 2) == 0.4);
    CHECK(decay.at(iteration, 3) == 0.1);
    CHECK(slow.at(iteration, 3) == doctest::Approx(0.1).epsilon(1e-15));
    CHECK(cosine.at(iteration, 0) == 0.3);
    CHECK(cosine.at(iteration, 1) == doctest::Approx(0.2 + 0.1 * std::sqrt(0.5)).epsilon(1e-15));
    CHECK(cosine.at(iteration, 2) == doctest::Approx(0.2).epsilon(1e-15));
    CHECK(cosine.at(iteration, 4) == 0.1);
    CHECK(warmUp.at(iteration, 0) == 0.4);
    CHECK(warmUp.at(iteration, 1) == 0.8);
    CHECK(warmUp.at(iteration, 3) == doctest::Approx(0.08).epsilon(1e-15));
  }
  for (const Schedule& schedule : {step, decay, slow, cosine, warmUp}) CHECK(!schedule.iterations());
  CHECK_REFUSED(Schedule(CosineSchedule{.iterations = 7, .epochs = 2}).validate(),
                "schedule cosine: iterations and epochs contradict each other; give one of them");
}

TEST_CASE("a schedule knows after how many iterations it no longer changes") {
  const auto ends = [](const Schedule& schedule) { return schedule.iterations(); };
  CHECK(ends(0.1) == 0);
  CHECK(ends(CosineSchedule{.iterations = 7}) == 7);
  CHECK(ends(WarmUpSchedule{.iterations = 9}) == 9);
  CHECK(ends(WarmUpSchedule{.iterations = 9, .then = CosineSchedule{.iterations = 7}}) == 9);
  CHECK(ends(WarmUpSchedule{.iterations = 3, .then = CosineSchedule{.iterations = 7}}) == 7);
  CHECK(ends(StepSchedule{}) == std::nullopt);
  CHECK(ends(ExponentialSchedule{}) == std::nullopt);
  CHECK(ends(WarmUpSchedule{.iterations = 100, .then = ExponentialSchedule{}}) == std::nullopt);
  CHECK(ends(WarmUpSchedule{.epochs = 9, .then = CosineSchedule{.iterations = 7}}) == std::nullopt);
  CHECK(ends(EpochSchedule{}) == std::nullopt);  // no length()
}

TEST_CASE("schedules refuse options out of range") {
  const Schedule broken[] = {
      kNan,
      kInfinity,
      StepSchedule{.every = 0},
      StepSchedule{.decay = 0},
      StepSchedule{.initial = kNan},
      ExponentialSchedule{.decay = -0.5},
      ExponentialSchedule{.initial = kNan},
      CosineSchedule{.iterations = 0},
      CosineSchedule{.final = kNan},
      CosineSchedule{.final = -1},
      CosineSchedule{.epochs = -1},
      StepSchedule{.epochs = -1},
      StepSchedule{.every = 5, .epochs = 1},
      ExponentialSchedule{.epochs = -1},
      WarmUpSchedule{.iterations = 5, .epochs = 1},
      WarmUpSchedule{.iterations = 0},
      WarmUpSchedule{.iterations = 2, .then = StepSchedule{.every = -1}},
  };
  for (const auto& schedule : broken) CHECK_THROWS_AS(schedule.validate(), InvalidArgument);
  for (const auto& [name, schedule] : kSchedules) CHECK_NOTHROW(schedule.validate());
}
