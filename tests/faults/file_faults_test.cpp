// Failing file calls: each call of each kind, once and from there on. Every job ends with one error that
// names the file and the cause, or succeeds; files are old or new, never partial; no descriptor, no thread
// and no temporary file is left; repeating the job without a fault gives the right result.
#include <cerrno>

#include "muster/core/comparison/results_file.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/weights.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/cifar10.h"
#include "muster/datasets/csv.h"
#include "muster/datasets/download.h"
#include "muster/datasets/file_bytes.h"
#include "muster/datasets/idx.h"
#include "muster/datasets/image_folder.h"
#include "muster/datasets/tar.h"
#include "muster/datasets/text.h"
#include "muster/parallel/nodes/elastic/directory_store.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/run/run_file.h"
#include "tests/core/nn/batches.h"
#include "tests/datasets/gzip.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/datasets/tar_bytes.h"
#include "tests/faults/failing_calls.h"
#include "tests/support/at_rest.h"
#include "tests/support/environment.h"
#include "tests/support/hang_watch.h"
#include "tests/support/http_server.h"
#include "tests/support/list_iterator.h"
#include "tests/support/log_lines.h"
#include "tests/support/png.h"
#include "tests/support/recording_listener.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

#ifdef MUSTER_WITH_PAGE
#include "muster/core/listeners/watch/page/curves_file.h"
#endif
#ifdef MUSTER_WITH_TENSORBOARD
#include "muster/core/listeners/watch/tensorboard/event_file.h"
#endif

using namespace muster;
using test::FailingCall;
using test::FailingCalls;
using test::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* call;
  int error;
  bool harmless = false;  // must have no effect

  std::string text() const {
    return fmt::format("{}: {}", call, error == 0 ? "half of the bytes" : std::strerror(error));
  }
};

const Kind kKinds[] = {
    {"open", EMFILE},       {"open", EIO},         {"open", ENOSPC},       {"open", EINTR, true},
    {"read", EIO},          {"read", 0, true},     {"read", EINTR, true},  {"write", ENOSPC},
    {"write", EIO},         {"write", EDQUOT},     {"write", 0, true},     {"write", EINTR, true},
    {"fsync", EIO},         {"fsync", ENOSPC},     {"fsync", EINTR, true}, {"close", EIO},
    {"close", EINTR, true}, {"rename", EIO},       {"rename", ENOSPC},     {"mkdir", ENOSPC},
    {"mkdir", EIO},         {"opendir", EMFILE},   {"opendir", EIO},       {"flock", EIO},
    {"flock", EINTR, true}, {"fchmod", EIO, true}, {"unlink", EIO},        {"fstat", EIO},
    {"ftruncate", EIO}};

/// An operation on the files of a directory.
struct Job {
  std::string name;
  std::function<void(const fs::path&)> prepare;
  std::function<std::string(const fs::path&)> run;  // @return its result
  std::function<void(const fs::path&)> check;       // also after a failure
  const char* made = nullptr;                       // a file whose contents are part of the result
  std::function<void()> settle = [] {};             // waits for work left to a server's thread
};

/// A directory in memory, because there are thousands of calls of fsync.
const test::Environment kDirectory("TMPDIR", fs::exists("/dev/shm") ? "/dev/shm" : "/tmp");

long openFiles() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

bool isTemporary(const fs::path& path) {
  return path.extension() == ".tmp";
}

std::set<std::string> temporariesIn(const fs::path& directory) {
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (isTemporary(entry.path())) found.insert(entry.path().filename().string());
  return found;
}

/// The result without a fault.
std::string resultOf(const Job& job, const fs::path& directory, std::string result) {
  return job.made ? std::move(result) + test::readFile(directory / job.made) : result;
}

/// One trial. @return whether a call has failed.
bool trial(const Job& job, const Kind& kind, long nth, long times, const std::string& expected) {
  CAPTURE(job.name);
  CAPTURE(kind.text());
  CAPTURE(nth);
  CAPTURE(times);
  const TemporaryDirectory directory;
  job.prepare(directory.path());
  const std::string under = directory.path().string();
  job.settle();
  const long files = openFiles();
  const auto threads = test::awaitRest();
  std::string text, result;
  long failed = 0;
  {
    const FailingCalls calls(
        {.name = kind.call, .nth = nth, .error = kind.error, .times = times, .under = under.c_str()});
    try {
      result = job.run(directory.path());
    } catch (const Error& error) {
      text = error.what();
    } catch (const std::exception& error) {
      text = fmt::format("no Error: {}", error.what());
    }
    failed = calls.count();
  }
  job.settle();
  CHECK(openFiles() == files);
  CHECK(test::awaitRest() == threads);
  if (text.empty()) {
    CHECK((resultOf(job, directory.path(), result) == expected));
  } else {
    CHECK(failed > 0);
    CHECK_MESSAGE(!kind.harmless, text);
    CHECK_MESSAGE(!text.starts_with("no Error"), text);
    CHECK_CONTAINS(text, under);
    CHECK_CONTAINS(text, std::strerror(kind.error));
  }
  job.check(directory.path());
  if (std::strcmp(kind.call, "unlink") != 0) CHECK(temporariesIn(directory.path()).empty());
  if (text.empty()) return failed > 0;
  result = job.run(directory.path());
  CHECK((resultOf(job, directory.path(), result) == expected));
  return failed > 0;
}

/// Every call of every kind.
void forEachFault(const Job& job) {
  const TemporaryDirectory directory;
  job.prepare(directory.path());
  std::string expected = job.run(directory.path());
  expected = resultOf(job, directory.path(), expected);
  std::string table;
  long all = 0;
  for (const Kind& kind : kKinds) {
    long count = 0;
    test::HangWatch watch(job.name + ", " + kind.text());  // the only limit on a trial's time
    for (const long times : {1L, kind.error == EINTR ? 3L : -1L}) {
      long nth = 0;
      const auto fails = [&] {
        watch.begin(nth);
        return trial(job, kind, nth, times, expected);
      };
      while (fails()) ++nth;
      count += nth;
    }
    if (count > 0) table += fmt::format("\n  {:<40} {:>5}", kind.text(), count);
    all += count;
  }
  MESSAGE(fmt::format("{}: {} faults{}", job.name, all, table));
  CHECK(all > 0);
}

struct SmallNetwork {
  explicit SmallNetwork(std::uint64_t seed)
      : model({.seed = seed,
               .updater = Nesterovs{.learningRate = 0.05},
               .inputShape = {6},
               .layers = {Dense{.units = 5, .activation = Activation::Tanh}, Output{.classes = 3}}}) {
    model.init();
  }
  MultiLayerNetwork model;
};

std::string bitsOf(Model& model) {
  const auto bits = test::stateBits(model);
  return {reinterpret_cast<const char*>(bits.data()), bits.size()};
}

test::ListIterator smallData(std::uint64_t count = 4) {
  return test::ListIterator(test::classBatches({6}, 4, 3, count));
}

void nothing(const fs::path&) {}

/// What a job does that has no result of its own.
auto quiet(auto call) {
  return [call](const fs::path& at) {
    call(at);
    return std::string();
  };
}

/// Reads a file with these bytes.
void forEachReadFault(const char* name, const std::string& bytes, std::string (*read)(const fs::path& file)) {
  forEachFault({name, [&](const fs::path& at) { test::writeFile(at / "file", bytes); },
                [&](const fs::path& at) { return read(at / "file"); }, nothing});
}

}  // namespace

TEST_CASE("file faults: a model is saved over another one") {
  SmallNetwork one(1), other(2);
  const TemporaryDirectory directory;
  one.model.save(directory / "one");
  other.model.save(directory / "other");
  const std::string old = test::readFile(directory / "one"), now = test::readFile(directory / "other");
  forEachFault({"save", [&](const fs::path& at) { test::writeFile(at / "model", old); },
                [&](const fs::path& at) {
                  other.model.save(at / "model");
                  return now;
                },
                [&](const fs::path& at) {
                  const std::string bytes = test::readFile(at / "model");
                  CHECK((bytes == old || bytes == now));
                }});
}

TEST_CASE("file faults: a model is loaded") {
  SmallNetwork saved(3);
  const auto prepare = [&](const fs::path& at) { saved.model.save(at / "model"); };
  forEachFault(
      {"load", prepare, [](const fs::path& at) { return bitsOf(*Network::load(at / "model")); }, nothing});
  forEachFault({"loadState", prepare,
                [](const fs::path& at) {
                  SmallNetwork into(4);
                  loadState(into.model, at / "model");
                  return bitsOf(into.model);
                },
                nothing});
}

TEST_CASE("file faults: weights are written and read") {
  SmallNetwork saved(3);
  forEachFault({"saveWeights", nothing,
                quiet([&](const fs::path& at) { saveWeights(saved.model, at / "weights"); }), nothing,
                "weights"});
  forEachFault({"loadWeights", [&](const fs::path& at) { saveWeights(saved.model, at / "weights"); },
                [](const fs::path& at) {
                  SmallNetwork into(4);
                  loadWeights(into.model, at / "weights");
                  return bitsOf(into.model);
                },
                nothing});
}

TEST_CASE("file faults: the newest checkpoint is searched") {
  test::LogLines warnings;  // about a file that cannot be read
  SmallNetwork saved(3);
  const auto prepare = [&](const fs::path& at) {
    for (const int epoch : {1, 2}) saved.model.save(checkpointPath(at, "checkpoint", {epoch, 0}));
  };
  forEachFault({"newestCheckpoint", prepare,
                [](const fs::path& at) { return newestCheckpoint(at) ? "one of them" : "none"; }, nothing});
}

TEST_CASE("file faults: a training writes checkpoints") {
  test::LogLines warnings;  // about an old file that cannot be removed
  forEachFault({"checkpoints", nothing,
                [](const fs::path& at) {
                  SmallNetwork small(5);
                  auto& model = small.model;
                  auto data = smallData();
                  const auto listener = std::make_shared<CheckpointListener>(
                      CheckpointOptions{.directory = at / "made" / "c",
                                        .everyIterations = 1,
                                        .keepLast = 2,
                                        .resumed = true});  // among the files of the run that failed
                  test::fitWith(model, 2, data, 2, {listener});
                  return bitsOf(model);
                },
                [](const fs::path& at) {
                  if (!fs::exists(at / "made" / "c")) return;
                  for (const auto& entry : fs::directory_iterator(at / "made" / "c"))
                    if (!isTemporary(entry.path()) && entry.path().extension() != ".muster-lock")
                      CHECK_NOTHROW(checkModelFile(entry.path()));
                }});
}

TEST_CASE("a training goes on while a checkpoint waits for its disk, which then gets the state of before") {
  constexpr std::int64_t kLast = 8;  // the last of 10 merges that the disk delays
  SmallNetwork small(5);
  auto data = smallData(20);
  const TemporaryDirectory directory;
  const std::string under = directory.path().string();
  const auto checkpoints = std::make_shared<CheckpointListener>(
      CheckpointOptions{.directory = directory.path(), .everyEpochs = 0, .everyIterations = 1});
  // The writer calls fsync again and again, as it is always interrupted.
  std::optional<FailingCalls> delay;
  delay.emplace(FailingCall{.name = "fsync", .error = EINTR, .times = -1, .under = under.c_str()});
  std::string first;
  std::vector<std::int64_t> merged;
  const auto before = std::make_shared<test::RecordingListener>(
      ListenerScope::Merged, [&](const test::RecordedCall& call, Trainer& trainer) {
        if (call.event != "merge") return;
        if (call.iteration == 1) first = bitsOf(trainer.model());
        if (delay && checkpoints->busy()) merged.push_back(call.iteration);
        if (call.iteration == kLast) delay.reset();
      });
  test::HangWatch watch("a training with a slow disk");
  watch.begin(0);
  test::fitWith(small.model, 2, data, 1, {before, checkpoints});
  CHECK((merged == std::vector<std::int64_t>{2, 3, 4, 5, 6, 7, 8}));
  const auto path = checkpointPath(directory.path(), "checkpoint", {.epoch = 0, .iteration = 1});
  CHECK(checkpoints->files().front() == path);
  CHECK((bitsOf(*Network::load(path)) == first));
}

TEST_CASE("file faults: files of data are read") {
  forEachReadFault("text", std::string(3000, 'a') + "b", [](const fs::path& file) {
    return std::to_string(readCharacterText(file)->indices.size());
  });
  forEachReadFault("csv", "x,y\n1,a\n2,b\n",
                   [](const fs::path& file) { return readCsv(file).features.toString(); });
  std::string images;
  for (const char label : {'\3', '\7'}) images += label + std::string(3072, label);
  forEachReadFault("CIFAR", images, [](const fs::path& file) {
    return std::to_string(readCifar10(std::span(&file, 1))->label(1));
  });
  forEachReadFault("tar", test::gzip(test::tarEntry("batch.bin", images) + test::tarEnd()),
                   [](const fs::path& file) {
                     const auto unpacked = readContents(file);
                     const auto entries = readTar(unpacked.bytes, unpacked.path);
                     return fmt::format("{} {}", entries.at(0).name, entries.at(0).bytes.size());
                   });
  forEachReadFault("gzip", test::gzip(test::idx({100}, std::string(100, '\7'))),
                   [](const fs::path& file) { return readIdx(file).toString(); });
}

TEST_CASE("file faults: a folder of pictures is read") {
  const std::array<std::uint8_t, 4> pixels{1, 2, 3, 4};
  forEachFault({"pictures",
                [&](const fs::path& at) {
                  for (const auto* name : {"cats", "dogs"}) {
                    fs::create_directories(at / "all" / name);
                    test::writePng(at / "all" / name / "1.png", pixels, 2, 2);
                  }
                },
                [](const fs::path& at) {
                  const auto folder = readImageFolder(at / "all", {.colour = PictureColour::Grey});
                  return fmt::format("{} {}", folder.classes.at(1), folder.images->image(1)[3]);
                },
                nothing});
}

TEST_CASE("file faults: nodes write and read texts in a directory") {
  const auto withoutPart = [](const fs::path& at) {
    if (!fs::exists(at / "store")) return;
    for (const auto& entry : fs::directory_iterator(at / "store")) CHECK(entry.path().extension() != ".part");
  };
  forEachFault({"texts", nothing,
                [](const fs::path& at) {
                  DirectoryStore store(at / "store");
                  store.eraseAll("");
                  store.put("card", "old");
                  store.put("card", "new");
                  const bool first = store.create("lease", "a"), second = store.create("lease", "b");
                  return fmt::format("{} {} {} {} '{}' {}", first, second, store.get("card"),
                                     store.get("lease"), store.get("none"), store.names("").size());
                },
                withoutPart});
}

TEST_CASE("file faults: a file is downloaded") {
  const std::string content(10000, 'c');
  const test::Environment direct("no_proxy", "127.0.0.1");
  test::HttpServer server(test::HttpReply::whole(content));
  test::LogLines lines;
  forEachFault({"download", nothing, quiet([&](const fs::path& at) {
                  download(server.address() + "file", at / "cache" / "file",
                           [](std::span<const std::uint8_t>) { return std::string(); }, {.attempts = 1});
                }),
                nothing, "cache/file", [&] { server.waitUntilIdle(); }});
}

TEST_CASE("file faults: a run file is read") {
  RunFile run;
  run.data.type = "generated";
  run.network = SmallNetwork(1).model.configuration().toJson();
  forEachReadFault("run file", run.toJson(),
                   [](const fs::path& file) { return RunFile::read(file).toJson(); });
}

TEST_CASE("file faults: a comparison adds a run to its results") {
  const RunRecord first{.arm = "a", .settings = {}, .seed = 1}, second{.arm = "a", .settings = {}, .seed = 2};
  const auto add = [&](const fs::path& at, const RunRecord& run) {
    ResultsFile results(at / "results.jsonl");
    results.join({.common = {{"training.workers", "2"}}});
    if (results.find(run.settings, run.seed) == nullptr) results.add(run);
  };
  forEachFault({"results", [&](const fs::path& at) { add(at, first); },
                quiet([&](const fs::path& at) { add(at, second); }),
                [&](const fs::path& at) {
                  const auto runs = ResultsFile(at / "results.jsonl").runs().size();
                  CHECK((runs == 1 || runs == 2));
                },
                "results.jsonl"});
}

// A training continues without these files if they cannot be written on, with a warning.

#ifdef MUSTER_WITH_PAGE
TEST_CASE("file faults: curves are written") {
  test::LogLines warnings;
  PageStore one;
  one.point("score/merged", 1, 0.5);
  const std::string head = curvesHead("arm");
  forEachFault({"curves", nothing,
                [&](const fs::path& at) {
                  CurvesFile file(at / "made" / "a.curves.jsonl", "arm");
                  PageStore store;
                  for (int i = 0; i < 3; ++i) {
                    store.point("score/merged", i, 1.0 / (i + 1));
                    file.update(store, i == 2);
                  }
                  return std::string();
                },
                [&](const fs::path& at) {
                  const auto file = at / "made" / "a.curves.jsonl";
                  if (fs::exists(file)) CHECK(test::readFile(file).starts_with(head));
                }});
  forEachFault({"all curves", nothing,
                quiet([&](const fs::path& at) { writeCurves(at / "a.curves.jsonl", "arm", one); }), nothing,
                "a.curves.jsonl"});
}
#endif

#ifdef MUSTER_WITH_TENSORBOARD
TEST_CASE("file faults: events for TensorBoard are written") {
  test::LogLines warnings;
  constexpr std::uintmax_t kRecord = 8 + 4 + 10 + 4;
  const auto fileIn = [](const fs::path& directory) { return fs::directory_iterator(directory)->path(); };
  forEachFault({"events", nothing,
                [](const fs::path& at) {
                  fs::remove_all(at / "events");
                  EventFile file(at / "events");
                  for (int i = 0; i < 3; ++i) file.append("ten bytes!");
                  return std::string();
                },
                [&](const fs::path& at) {
                  if (!fs::exists(at / "events") || fs::is_empty(at / "events")) return;
                  CHECK(fs::file_size(fileIn(at / "events")) % kRecord == 0);  // whole records
                }});
}
#endif
