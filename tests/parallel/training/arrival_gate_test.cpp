#include "muster/parallel/training/arrival_gate.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <thread>

using namespace muster;

namespace {

using Landing = std::vector<Arrival>;

/// Two workers arrive in the order of these landings; logs the events.
struct Course {
  explicit Course(std::vector<Landing> planned) : landings(std::move(planned)), next(landings.front()) {}
  /// @return the result of `ArrivalGate::pass`.
  bool pass(int worker) {
    return gate.pass(
        worker, [&] { log += fmt("in", worker); }, [&] { return land(worker); },
        [&] { log += fmt("out", worker); });
  }
  std::span<const Arrival> land(int worker) {
    log += fmt("land", worker);
    landed = next;
    next = landings.at(++done);
    return landed;
  }
  static std::string fmt(std::string what, int worker) {
    return what.append(std::to_string(worker)).append(" ");
  }

  std::vector<Landing> landings;
  Landing next, landed;
  std::size_t done = 0;
  std::string log;  // written inside the gate
  ArrivalGate gate{2, [this] { return std::span<const Arrival>(next); }};
};

constexpr Arrival kAway{}, kArrives{.arrives = true}, kBack{.arrives = true, .resumes = true},
    kGoesOn{.resumes = true};

}  // namespace

TEST_CASE("arrivals land in their order, whichever worker arrives first") {
  for (const bool firstIsEarly : {true, false}) {
    Course course({{kBack, kAway}, {kAway, kBack}, {kBack, kAway}});
    const int early = firstIsEarly ? 0 : 1;
    std::jthread other([&] { CHECK(course.pass(early)); });
    CHECK(course.pass(1 - early));
    other.join();
    CHECK(course.done == 2);
    // Worker 1 never lands before worker 0 has arrived.
    CHECK(course.log.find("in0") < course.log.find("land"));
    CHECK(course.log.find("out1") > course.log.find("land", course.log.find("land") + 1));
  }
}

TEST_CASE("a worker that has landed waits until a later landing releases it") {
  Course course({{kArrives, kAway}, {kGoesOn, kBack}, {kBack, kAway}});
  std::jthread other([&] { CHECK(course.pass(0)); });
  CHECK(course.pass(1));
  other.join();
  CHECK(course.done == 2);
}

TEST_CASE("no worker waits for an arrival of a worker that has ended") {
  Course course({{kAway, kBack}, {kBack, kAway}, {kBack, kAway}});
  std::jthread other([&] { CHECK(course.pass(0)); });
  course.gate.end(1, [] {});
  other.join();
  CHECK(course.done == 0);
  CHECK(course.log == "in0 out0 ");
  course.gate.beginEpoch();  // all workers take part again
  std::jthread again([&] { CHECK(course.pass(0)); });
  CHECK(course.pass(1));
  again.join();
}

TEST_CASE("after an abort no worker waits") {
  Course course({{kAway, kBack}, {kBack, kAway}});
  std::jthread other([&] { CHECK_FALSE(course.pass(0)); });
  course.gate.abort();
  other.join();
  CHECK_FALSE(course.pass(1));
  CHECK(course.done == 0);
}

TEST_CASE("after an arrival or a landing that throws the next worker neither repeats it nor waits") {
  for (const bool inLanding : {true, false}) {
    const Landing next{kBack, inLanding ? kAway : kBack};
    ArrivalGate gate(2, [&] { return std::span<const Arrival>(next); });
    int landings = 0;
    const auto land = [&]() -> std::span<const Arrival> {
      ++landings;
      throw std::runtime_error("no");
    };
    const auto arrive = [&] {
      if (!inLanding) throw std::runtime_error("no");
    };
    const auto nothing = [] {};
    CHECK_THROWS_AS(gate.pass(0, arrive, land, nothing), std::runtime_error);
    CHECK_FALSE(gate.pass(1, nothing, land, nothing));
    CHECK(landings == (inLanding ? 1 : 0));
  }
}
