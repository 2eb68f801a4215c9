// Memory runs out at the k-th allocation, for all k, while a model is saved or loaded, or trains with
// checkpoints.
#include <fmt/format.h>

#include "muster/core/io/model_file.h"
#include "muster/core/io/weights.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/batches.h"
#include "tests/support/allocations.h"
#include "tests/support/environment.h"
#include "tests/support/list_iterator.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"
#include "tests/support/whole.h"

using namespace muster;
using namespace muster::test;

namespace {

using Lasting = FailingAllocations::Lasting;

/// A directory in memory, because there are thousands of calls of fsync.
const Environment kDirectory("TMPDIR", std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp");

std::unique_ptr<MultiLayerNetwork> network(std::uint64_t seed) {
  auto made = std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration{
      .seed = seed,
      .updater = Nesterovs{.learningRate = 0.05},
      .inputShape = {1, 6, 6},
      .layers = {Conv2d{.outChannels = 2, .kernel = {3, 3}}, BatchNorm{}, Output{.classes = 3}}});
  made->init();
  return made;
}

std::string shortageIn(std::string_view call, const std::filesystem::path& file) {
  return fmt::format("{}: {}: memory has run out", call, file.string());
}

/// For all n, calls `work` with the n-th allocation failing, once alone and once with all later ones; then
/// `check(failed)`. Where `halved` and not `whole()`, even ones fail alone and odd ones with all later ones.
///
/// @param expected  what the errors of failing calls say; "": anything.
///
/// Calls have no limit on their time: on a loaded machine a call may wait for a core longer than any limit
/// that would be of use. CTest's time limit ends a case that hangs.
template <typename Prepare, typename Work, typename Check>
void forEachAllocation(const std::string& expected, Prepare prepare, Work work, Check check,
                       bool halved = false) {
  const bool some = halved && !whole();
  for (const auto lasting : {Lasting::No, Lasting::Yes}) {
    long nth = some && lasting == Lasting::Yes ? 1 : 0;
    for (bool any = true; any; nth += some ? 2 : 1) {
      REQUIRE(nth < 20'000);
      CAPTURE(nth);
      prepare();
      bool failed = false;
      std::array<char, 512> text{};  // no allocation succeeds meanwhile
      {
        const FailingAllocations shortage(nth, lasting);
        try {
          work();
        } catch (const std::exception& error) {
          failed = true;
          std::strncpy(text.data(), error.what(), text.size() - 1);
        }
        any = shortage.any();
      }
      if (failed && !expected.empty()) CHECK(std::string(text.data()) == expected);
      check(failed);
    }
    MESSAGE(nth << " allocations");
  }
}

}  // namespace

TEST_CASE("a save that runs out of memory leaves the old file or the new one, and no other file") {
  const TemporaryDirectory directory;
  const auto file = directory / "model";
  const auto one = network(1), other = network(2);
  other->save(file);
  const std::string now = readFile(file);
  one->save(file);
  const std::string old = readFile(file);
  forEachAllocation(
      shortageIn("save", file), [&] { writeFile(file, old); }, [&] { other->save(file); },
      [&](bool failed) {
        CHECK((readFile(file) == (failed ? old : now)));
        CHECK(directory.names() == std::set<std::string>{"model"});
      });
}

TEST_CASE("a load that runs out of memory gives the whole model or none") {
  const TemporaryDirectory directory;
  const auto file = directory / "model";
  const auto saved = network(3);
  saved->save(file);
  std::unique_ptr<Network> loaded;
  forEachAllocation(
      shortageIn("load", file), [&] { loaded.reset(); }, [&] { loaded = Network::load(file); },
      [&](bool failed) {
        CHECK(failed == (loaded == nullptr));
        if (loaded) CHECK(stateBits(*loaded) == stateBits(*saved));
      });
  auto into = network(4);
  const auto before = stateBits(*into);
  forEachAllocation(
      shortageIn("loadState", file), [&] { into = network(4); }, [&] { loadState(*into, file); },
      [&](bool failed) { CHECK(stateBits(*into) == (failed ? before : stateBits(*saved))); });
}

TEST_CASE("other calls that read or write model files and weights name the file when memory runs out") {
  const TemporaryDirectory directory;
  const auto model = directory / "model", weights = directory / "weights";
  const auto saved = network(3), into = network(4);
  saved->save(model);
  saveWeights(*saved, weights);
  const auto check = [](const std::string& text, const auto& work) {
    forEachAllocation(
        text, [] {}, work, [](bool) {});
  };
  check(shortageIn("readModelNotes", model), [&] { readModelNotes(model); });
  check(shortageIn("checkModelFile", model), [&] { checkModelFile(model); });
  check(shortageIn("readSafetensors", model), [&] { readSafetensors(model); });
  check(shortageIn("loadWeights", weights), [&] { loadWeights(*into, weights); });
  check(shortageIn("saveWeights", weights), [&] { saveWeights(*saved, weights); });
  const auto contents = readSafetensors(weights);
  check(shortageIn("writeSafetensors", weights), [&] { writeSafetensors(weights, contents); });
}

TEST_CASE("a training that runs out of memory writes only whole checkpoints") {
  const auto train = [](Network& model, const std::filesystem::path& directory) {
    ListIterator data(classBatches({1, 6, 6}, 4, 3, 2));
    model.setListeners({std::make_shared<CheckpointListener>(
        CheckpointOptions{.directory = directory, .everyIterations = 1, .keepLast = 1})});
    model.fit(data);
  };
  std::optional<TemporaryDirectory> directory;
  std::unique_ptr<MultiLayerNetwork> model;
  const auto prepare = [&] {
    directory.emplace();
    model = network(5);
  };
  prepare();
  train(*model, directory->path());
  const auto expected = stateBits(*model);
  forEachAllocation(
      "", prepare, [&] { train(*model, directory->path()); },
      [&](bool failed) {
        for (const auto& name : directory->names()) {
          CHECK_FALSE(name.ends_with(".tmp"));
          CHECK_NOTHROW(checkModelFile(*directory / name));
        }
        if (!failed) CHECK(stateBits(*model) == expected);
      },
      /*halved=*/true);
}
