// The convnet on a limited machine: no home, no temporary directory, no locale, a clock that runs backwards,
// few descriptors, few threads, fewer cores.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "muster/core/io/model_file.h"
#include "muster/core/io/safetensors.h"
#include "tests/examples/convnet.h"
#include "tests/examples/in_writing.h"
#include "tests/support/child_process.h"
#include "tests/support/recording_listener.h"
#include "tests/support/sanitizers.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster {
namespace {

using test::contains;
using test::ConvnetRun;
using test::Outcome;
using Environment = std::map<std::string, std::string>;

const std::string kTraining = "train run.json --batch 16 --quiet --model model --checkpoint-dir c";

/// The model that a training leaves on a machine without limits.
const std::string& undisturbed() {
  static const std::string bits = [] {
    const ConvnetRun muster;
    muster.succeeds(kTraining);
    return muster.read("model");
  }();
  return bits;
}

/// The same after shell commands that limit it.
Outcome runBy(ConvnetRun& muster, const std::string& limits, const Environment& environment = {}) {
  for (const auto& [name, value] : environment) muster.environment[name] = value;
  return muster.shell(limits + "exec muster " + kTraining);
}

/// Checks that it either trains or ends with one line that contains `words`.
/// @return whether it trained.
bool trainsOrSays(const std::string& line, const std::string& words, const Environment& environment = {}) {
  CAPTURE(line);
  ConvnetRun muster;
  const Outcome outcome = runBy(muster, line, environment);
  CAPTURE(outcome.exit);
  CAPTURE(outcome.err);
  if (outcome.exit == 0) {
    CHECK((muster.read("model") == undisturbed()));
    return true;
  }
  // The system could not load the program's libraries (optional modules have many), so it did not start.
  if (outcome.exit == 127 && contains(outcome.err, "error while loading shared libraries")) return false;
  CHECK(outcome.exit > 0);
  CHECK_CONTAINS(outcome.err, words);
  return false;
}

bool trains(const std::string& line, const Environment& environment = {}) {
  return trainsOrSays(line, "", environment);
}

}  // namespace

TEST_CASE("programs run without a home, a directory for temporary files or a locale") {
  CHECK(trains("", {{"HOME", "/proc"}, {"MUSTER_CACHE_DIR", ""}, {"XDG_CACHE_HOME", ""}}));
  CHECK(trains("unset HOME MUSTER_CACHE_DIR XDG_CACHE_HOME; "));
  CHECK(trains("", {{"TMPDIR", "/nonexistent"}}));
  CHECK(trains("", {{"LC_ALL", "garbage"}}));
  CHECK(trains("unset LANG LC_ALL; "));
}

TEST_CASE("with few file descriptors a program trains, or reports too many open files") {
  int trained = 0;
  for (const int files : {6, 7, 8, 10, 14})
    trained += trainsOrSays(fmt::format("ulimit -n {}; ", files), "oo many open files") ? 1 : 0;
  CHECK(trained > 0);
}

TEST_CASE("with 32 threads and processes allowed, two workers train, and 64 are refused") {
  if (::geteuid() != 0) return test::skip("only root can become a user without other processes");
  const auto text = test::inChild([]() -> std::string {
    constexpr uid_t kUser = 54321;
    const rlimit limit{32, 32};
    if (::setrlimit(RLIMIT_NPROC, &limit) != 0 || ::setresuid(kUser, kUser, kUser) != 0)
      return "not possible";
    test::ToyModel model;
    auto wrapper = test::toyWrapper(model, 2).build();
    auto data = test::ToyIterator::ofValues({4, 4, 4, 4});
    wrapper.fit(data);
    return fmt::format("{} {}", model.parameters()[0],
                       test::thrown<Error>([&] { test::toyWrapper(model, 64).build(); }));
  });
  CHECK_MESSAGE(text.starts_with("3 the thread of worker "), text);
}

TEST_CASE("cores that are taken away during a training change nothing") {
  const auto train = [](bool taken) {
    cpu_set_t before;
    REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    test::ToyModel model;
    const auto listener = std::make_shared<test::RecordingListener>(
        ListenerScope::Merged, [&](const test::RecordedCall& call, Trainer&) {
          if (!taken || call.event != "merge" || call.batch > 2) return;
          cpu_set_t first;
          CPU_ZERO(&first);
          for (int core = 0; CPU_COUNT(&first) == 0; ++core)
            if (CPU_ISSET(core, &before)) CPU_SET(core, &first);
          for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
            ::sched_setaffinity(std::stoi(task.path().filename()), sizeof first, &first);
        });
    auto wrapper = test::toyWrapper(model, 2).pinThreads(true).listeners({listener}).build();
    test::ToyIterator data(test::randomBatches(3, 20, 4));
    wrapper.fit(data, 2);
    ::sched_setaffinity(0, sizeof before, &before);
    return model.allBits();
  };
  CHECK((train(true) == train(false)));
}

TEST_CASE("a clock that is set back by an hour again and again changes nothing") {
  CHECK(trains("", {{"LD_PRELOAD", MUSTER_FAILING_CALLS_LIBRARY}, {"MUSTER_CLOCK_RUNS_BACK", "1"}}));
}

TEST_CASE("if a thread cannot be started, a program trains without it or names it") {
  int refused = 0;
  for (const int nth : {0, 1, 3, 4})
    refused += trainsOrSays("", "the thread of ",
                            {{"LD_PRELOAD", MUSTER_FAILING_CALLS_LIBRARY},
                             {"MUSTER_FAILING_CALLS", fmt::format("thread,{},{},-1,/", nth, EAGAIN)}})
                   ? 0
                   : 1;
  CHECK(refused > 0);
}

TEST_CASE("muster plan refuses a network that cannot fit into memory before it allocates it") {
  const test::Sandbox sandbox;
  const auto refusal = [&](const std::string& limit, const char* units) {
    return test::errorOf(
        sandbox.shell(fmt::format("muster example >run.json && {}exec muster plan run.json --set "
                                  "'network.layers=[{{\"type\":\"dense\",\"units\":{}}},"
                                  "{{\"type\":\"output\",\"classes\":10}}]'",
                                  limit, units)),
        1);
  };
  const std::string begin = "muster: network: its parameters, gradients and updater state take ";
  const auto all = refusal("", "1000000000");  // 3,136 GB, twice or more
  CHECK_MESSAGE(all.starts_with(begin), all);
  CHECK_CONTAINS(all, " that this process may use (");
  if (test::kSanitized) return;
  const auto limited = refusal("ulimit -d 400000 && ", "100000");
  CHECK_MESSAGE(limited.starts_with(begin), limited);
  CHECK_CONTAINS(limited, "but of the 409.6 MB that this process may use (ulimit -d) ");
}

/// The limits are in MB. MUSTER_ADDRESS_LIMITS ("150,420,6": from, to, step) tries others, for `./run soak`.
TEST_CASE("under a limit on addresses a program trains, or says what failed, and leaves whole files") {
  int from = 162, to = 294, step = 44;
  if (const char* const limits = std::getenv("MUSTER_ADDRESS_LIMITS"))
    REQUIRE(std::sscanf(limits, "%d,%d,%d", &from, &to, &step) == 3);
  int ended = 0;
  for (int limit = from; limit <= to; limit += step) {
    CAPTURE(limit);
    ConvnetRun muster;
    const Outcome outcome = runBy(muster, fmt::format("ulimit -c 0 -v {}000; ", limit));
    CAPTURE(outcome.err);
    if (outcome.exit == 127) continue;  // the system could not load the program's libraries
    ++ended;
    if (outcome.exit == 0) {
      CHECK((muster.read("model") == undisturbed()));
      continue;
    }
    CHECK(outcome.exit == 1);  // below 0 after a signal
    CHECK(outcome.err.starts_with("muster: "));
    CHECK(outcome.err.ends_with("\n"));
    for (const auto& name : test::namesIn(muster.directory.path())) {
      CAPTURE(name);
      if (name == "model") CHECK_NOTHROW(checkModelFile(muster.directory / name));
    }
    for (const auto& name : test::namesIn(muster.directory / "c"))
      if (name.ends_with(".safetensors")) CHECK_NOTHROW(checkModelFile(muster.directory / "c" / name));
  }
  CHECK(ended > 0);
}

TEST_CASE("on a full disk without a directory for temporary files, the error names the file") {
  int failed = 0;
  const test::TemporaryDirectory home;  // where the network is written instead
  for (const int nth : {0, 5, 20}) {
    CAPTURE(nth);
    ConvnetRun muster;
    const auto under = muster.directory.path().string();
    const Outcome outcome =
        runBy(muster, "",
              {{"LD_PRELOAD", MUSTER_FAILING_CALLS_LIBRARY},
               {"MUSTER_FAILING_CALLS", fmt::format("write,{},{},-1,{}", nth, ENOSPC, under)},
               {"TMPDIR", "/nonexistent"},
               {"HOME", home.path().string()}});
    CAPTURE(outcome.err);
    if (outcome.exit == 0) continue;
    ++failed;
    CHECK(outcome.exit == 1);
    CHECK_CONTAINS(outcome.err, "No space left on device");
    const auto named = {"model: ", "c: cannot be made: ", "c/checkpoint-epoch-0001.safetensors: "};
    CHECK(std::ranges::any_of(named, [&](auto* name) { return contains(outcome.err, name); }));
    CHECK_LACKS(outcome.err, "temp_directory_path");
  }
  CHECK(failed >= 2);
}

TEST_CASE("if the disk is full at the end of a training, the network is written elsewhere") {
  test::Sandbox muster;
  muster.write("run.json", muster.succeeds("example").out);
  const test::TemporaryDirectory elsewhere;
  muster.environment["TMPDIR"] = elsewhere.path().string();
  muster.environment["LD_PRELOAD"] = MUSTER_FAILING_CALLS_LIBRARY;
  // The first write tests, before the training, whether the file can be written.
  muster.environment["MUSTER_FAILING_CALLS"] =
      fmt::format("write,1,{},-1,{}", ENOSPC, muster.directory.path().string());
  const auto error = test::errorOf(
      muster("train run.json --set data.trainExamples=96 --set data.testExamples=20 --epochs 1 --device cpu "
             "--model net"),
      1);
  REQUIRE(elsewhere.names().size() == 1);
  const auto saved = elsewhere / *elsewhere.names().begin();
  CHECK_CONTAINS(error, "net: could not be written: No space left on device; saved as " + saved.string());
  CHECK_NOTHROW(readSafetensors(saved));
  CHECK_FALSE(muster.has("net"));
}

}  // namespace muster
