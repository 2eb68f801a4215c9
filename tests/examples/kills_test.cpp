// kill -9 at random moments: resumed runs end with the bits of a run that was never killed. MUSTER_KILLS is
// the number of kills (default 20), MUSTER_TEST_SEED the seed of the moments. Every fourth kill comes while a
// checkpoint is being written.
#include <random>

#include "tests/examples/convnet.h"
#include "tests/examples/in_writing.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using test::ConvnetRun;
using test::namesIn;
using test::temporaryIn;

std::uint64_t numberFrom(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Two epochs of 38 rounds, by rules that keep state of each worker.
std::string lineOf(const std::string& rule) {
  return "train run.json --epochs 2 --batch 8 --quiet " + rule;
}

/// A checkpoint every few rounds, so that many kills fall into writing one.
constexpr const char* kResuming =
    " --model resumed --checkpoint-dir c --checkpoint-iterations 2 --keep 2 --resume c";

}  // namespace

TEST_CASE("killed at random moments and resumed, a training ends with the same bits and leaves no files") {
  const auto kills = numberFrom("MUSTER_KILLS", 20), seed = numberFrom("MUSTER_TEST_SEED", 1);
  std::mt19937_64 random(seed);
  std::uint64_t killed = 0, trainings = 0, writes = 0, unseen = 0;
  const std::vector<std::string> rules{"--strategy-options updaterState=keep", "--strategy shared"};
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const auto begin = Clock::now();
    const ConvnetRun undisturbed;
    undisturbed.succeeds(lineOf(rules[r]) + " --model whole");
    const std::chrono::duration<double> whole = Clock::now() - begin;
    const std::string bits = undisturbed.tensorsIn("whole");
    // Moments until shortly after the end of a run: some runs finish, and a new training begins.
    std::uniform_real_distribution<double> moment(0, 1.3 * whole.count());
    while (killed < kills * (r + 1) / rules.size()) {
      const ConvnetRun muster;
      const auto checkpoints = muster.directory / "c";
      for (bool ended = false; !ended;) {
        const auto before = namesIn(checkpoints), beside = muster.directory.names();
        auto program = muster.start(lineOf(rules[r]) + kResuming);
        const bool last = killed >= kills * (r + 1) / rules.size();
        const bool inWriting = !last && killed % 4 == 0;
        // A training that was not seen writing is followed by one that is watched from its beginning.
        const double wait = inWriting && unseen > 0 ? 0 : moment(random);
        ended = last || program.endsWithin(std::chrono::duration<double>(wait));
        if (!ended && inWriting) {
          ended = test::stopInWriting(program, checkpoints, before).empty();
          unseen = ended ? unseen + 1 : 0;
          REQUIRE(unseen < test::kTrainingsToWatch);
        }
        if (!ended) program.signal(SIGKILL);
        const auto outcome = program.wait();
        CAPTURE(outcome.err);
        CAPTURE(killed);
        if (outcome.exit == -SIGKILL) {
          ended = false;  // unless it ended just before
          ++killed;
          const bool writing = !temporaryIn(namesIn(checkpoints), before).empty();
          if (inWriting) CHECK(writing);
          writes += writing || !temporaryIn(muster.directory.names(), beside).empty() ? 1 : 0;
        } else {
          REQUIRE(outcome.exit == 0);
          ended = true;
        }
      }
      ++trainings;
      CHECK((muster.tensorsIn("resumed") == bits));
      CHECK(muster.directory.names() == std::set<std::string>{"c", "resumed", "run.json"});
      const auto left = namesIn(checkpoints);
      CHECK(left.size() == 2);
      CHECK(temporaryIn(left) == "");
    }
  }
  CHECK(writes >= (kills + 3) / 4);
  MESSAGE("seed ", seed, ": ", killed, " kills, ", writes, " of them while a file was being written; ",
          trainings, " trainings ended");
}

}  // namespace muster
