#include "muster/parallel/runtime/activity.h"

#include <doctest/doctest.h>

#include <thread>

using namespace muster;
using namespace std::chrono_literals;

TEST_CASE("an activity describes its kind, its batch and its duration") {
  Activity activity;
  CHECK(activity.describe().empty());
  CHECK_FALSE(activity.busy());
  activity.set(Activity::Kind::Computing, 57);
  CHECK(activity.busy());
  std::this_thread::sleep_for(20ms);
  CHECK(activity.elapsed() >= 20ms);
  CHECK(activity.describe().starts_with("computing (batch 58) for "));
  CHECK(activity.describe().ends_with(" s"));
  const auto before = std::chrono::steady_clock::now();
  activity.set(Activity::Kind::WaitingForData);
  CHECK_FALSE(activity.busy());
  const auto elapsed = activity.elapsed();
  CHECK(elapsed <= std::chrono::steady_clock::now() - before);
  CHECK(activity.describe().starts_with("waiting for data for "));
  activity.set(Activity::Kind::InExchange, 2);
  CHECK_FALSE(activity.busy());
  CHECK(activity.describe().starts_with("in a sum over the workers (batch 3) for "));
}

TEST_CASE("the age of an activity is never that of the one before") {
  Activity activity;
  activity.set(Activity::Kind::WaitingForData);
  std::this_thread::sleep_for(50ms);
  const auto started = std::chrono::steady_clock::now();
  std::jthread owner([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      for (int i = 0; i < 100; ++i)
        activity.set(i % 2 ? Activity::Kind::WaitingForData : Activity::Kind::Computing);
  });
  int old = 0;
  for (int i = 0; i < 20000; ++i) {
    if (!activity.busy()) continue;
    const auto elapsed = activity.elapsed();
    old += elapsed > std::chrono::steady_clock::now() - started ? 1 : 0;
  }
  CHECK(old == 0);
}

TEST_CASE("a phase is the activity of its thread, and its time is added also if it throws") {
  using Clock = std::chrono::steady_clock;
  Activity activity;
  std::chrono::nanoseconds sum{1000};
  const auto work = [&](bool fails) {
    const Phase phase(activity, Activity::Kind::Merging, sum, 3);
    CHECK(activity.kind() == Activity::Kind::Merging);
    const auto begin = Clock::now();
    while (Clock::now() - begin < 100us) {
    }
    CHECK(sum % 1000ns == 0ns);  // not before the end
    if (fails) throw 1;
  };
  const auto begin = Clock::now();
  work(false);
  const auto once = sum;
  CHECK(once >= 101us);
  sum = 100us;
  CHECK_THROWS_AS(work(true), int);
  CHECK(sum >= 200us);
  CHECK(once + sum <= Clock::now() - begin + 101us);
  CHECK(activity.kind() == Activity::Kind::Merging);  // for the text of a failure
}
