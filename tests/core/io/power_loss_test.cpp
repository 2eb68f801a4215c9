// Power loss at any moment of a training that writes checkpoints. Simulates a disk: records the calls that
// change files while the training runs, and for every prefix of the calls generates all images that a disk
// may then hold. A disk only guarantees synchronised data: of a file's bytes without fsync() any part may be
// on the disk, and of a directory's changes since its last fsync() any subset, also out of order.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>

#include "muster/core/data/in_memory.h"
#include "muster/core/io/checkpoint_files.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

enum class Call { Create, Write, SyncFile, SyncDirectory, Rename, Remove };

struct Recorded {
  Call call;
  std::string name = {}, to = {};  // in the directory
  int file = -1;                   // its number
  std::string bytes = {};
};

/// What happens in one directory, in order.
class Recorder {
 public:
  void watch(const std::filesystem::path& directory) {
    const std::scoped_lock lock(mutex_);
    directory_ = std::filesystem::canonical(directory);
    calls_.clear();
  }
  std::vector<Recorded> stop() {
    const std::scoped_lock lock(mutex_);
    directory_.clear();
    return std::move(calls_);
  }
  void opened(const char* path, int flags, int descriptor) {
    const std::scoped_lock lock(mutex_);
    if (directory_.empty() || descriptor < 0) return;
    if (std::filesystem::path(path) == directory_) {
      directories_.insert(descriptor);
    } else if (const auto name = nameOf(path); name && (flags & O_CREAT) != 0) {
      files_[descriptor] = made_;
      calls_.push_back({.call = Call::Create, .name = *name, .file = made_++});
    }
  }
  void wrote(int descriptor, const void* bytes, ssize_t count) {
    const std::scoped_lock lock(mutex_);
    const auto file = files_.find(descriptor);
    if (file == files_.end() || count <= 0) return;
    const std::string text(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
    calls_.push_back({.call = Call::Write, .file = file->second, .bytes = text});
  }
  void synced(int descriptor) {
    const std::scoped_lock lock(mutex_);
    if (const auto file = files_.find(descriptor); file != files_.end())
      calls_.push_back({.call = Call::SyncFile, .file = file->second});
    if (directories_.contains(descriptor)) calls_.push_back({.call = Call::SyncDirectory});
  }
  void closed(int descriptor) {
    const std::scoped_lock lock(mutex_);
    files_.erase(descriptor);
    directories_.erase(descriptor);
  }
  void renamed(const char* from, const char* to) {
    const std::scoped_lock lock(mutex_);
    const auto before = nameOf(from), after = nameOf(to);
    if (before && after) calls_.push_back({.call = Call::Rename, .name = *before, .to = *after});
  }
  void removed(const char* path) {
    const std::scoped_lock lock(mutex_);
    if (const auto name = nameOf(path)) calls_.push_back({.call = Call::Remove, .name = *name});
  }

 private:
  std::optional<std::string> nameOf(const std::filesystem::path& path) const {
    if (directory_.empty() || path.parent_path() != directory_) return {};
    return path.filename().string();
  }

  std::mutex mutex_;
  std::filesystem::path directory_;
  std::map<int, int> files_;   // descriptor -> number
  std::set<int> directories_;  // descriptors
  int made_ = 0;
  std::vector<Recorded> calls_;
};

Recorder& recorder() {
  static Recorder one;
  return one;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// These functions intercept the calls of AtomicFile and std::filesystem.
extern "C" {
int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const int descriptor = real<int (*)(const char*, int, ...)>("open")(path, flags, mode);
  recorder().opened(path, flags, descriptor);
  return descriptor;
}
ssize_t write(int descriptor, const void* bytes, size_t count) {
  const ssize_t written = real<ssize_t (*)(int, const void*, size_t)>("write")(descriptor, bytes, count);
  recorder().wrote(descriptor, bytes, written);
  return written;
}
int fsync(int descriptor) {  // not executed: only the time of the call matters
  recorder().synced(descriptor);
  return 0;
}
int close(int descriptor) {
  recorder().closed(descriptor);
  return real<int (*)(int)>("close")(descriptor);
}
int rename(const char* from, const char* to) noexcept {
  const int result = real<int (*)(const char*, const char*)>("rename")(from, to);
  if (result == 0) recorder().renamed(from, to);
  return result;
}
int unlink(const char* path) noexcept {
  const int result = real<int (*)(const char*)>("unlink")(path);
  if (result == 0) recorder().removed(path);
  return result;
}
int remove(const char* path) noexcept {
  const int result = real<int (*)(const char*)>("remove")(path);
  if (result == 0) recorder().removed(path);
  return result;
}
}

namespace {

using Image = std::map<std::string, std::string>;  // name -> bytes

/// The possible contents of a disk after the first `cut` calls.
class Disk {
 public:
  Disk(const std::vector<Recorded>& calls, std::size_t cut) {
    for (std::size_t i = 0; i < cut; ++i) add(calls[i]);
  }

  /// Finished checkpoints in their order: name and bytes; `certain` of them are durable, since the directory
  /// was synchronised after their renaming.
  std::vector<std::pair<std::string, std::string>> finished;
  std::size_t certain = 0;

  /// Calls `use(image)` for each.
  template <typename Use>
  void eachImage(Use use) const {
    REQUIRE(pending_.size() <= 12);
    for (std::size_t subset = 0; subset < std::size_t{1} << pending_.size(); ++subset) {
      auto names = names_;
      for (std::size_t i = 0; i < pending_.size(); ++i)
        if ((subset >> i & 1) != 0) apply(pending_[i], names);
      for (const auto& unsynced : {"nothing", "half", "zeros", "all"}) {
        Image image;
        for (const auto& [name, file] : names) image[name] = contentsOf(file, unsynced);
        use(image);
      }
    }
  }

 private:
  struct File {
    std::string bytes;
    std::size_t synced = 0;
  };

  void add(const Recorded& one) {
    switch (one.call) {
      case Call::Create:
        latest_[one.name] = one.file;
        break;
      case Call::Write:
        files_[one.file].bytes += one.bytes;
        return;
      case Call::SyncFile:
        files_[one.file].synced = files_[one.file].bytes.size();
        return;
      case Call::SyncDirectory:
        for (const auto& change : pending_) apply(change, names_);
        pending_.clear();
        certain = finished.size();
        return;
      case Call::Rename:
        // Keep the file's number, even if its creation is lost.
        pending_.push_back(one);
        pending_.back().file = latest_[one.to] = latest_[one.name];
        finished.emplace_back(one.to, files_[latest_[one.name]].bytes);
        latest_.erase(one.name);
        return;
      case Call::Remove:
        latest_.erase(one.name);
        break;
    }
    pending_.push_back(one);
  }
  static void apply(const Recorded& change, std::map<std::string, int>& names) {
    names.erase(change.name);
    if (change.call == Call::Create) names[change.name] = change.file;
    if (change.call == Call::Rename) names[change.to] = change.file;
  }
  std::string contentsOf(int number, std::string_view unsynced) const {
    const auto found = files_.find(number);
    if (found == files_.end()) return {};
    const auto& [bytes, synced] = found->second;
    const std::size_t rest = bytes.size() - synced;
    if (unsynced == "all") return bytes;
    if (unsynced == "half") return bytes.substr(0, synced + rest / 2);
    return bytes.substr(0, synced) + std::string(unsynced == "zeros" ? rest : 0, '\0');
  }

  std::map<int, File> files_;
  std::map<std::string, int> names_;   // on the disk for certain
  std::map<std::string, int> latest_;  // as the running system sees them
  std::vector<Recorded> pending_;      // changes of the directory
};

struct Result {
  int images = 0, lost = 0;
};

/// Looks for the newest checkpoint in every image of every cut.
Result replay(const std::vector<Recorded>& calls) {
  Result result;
  const TemporaryDirectory directory;
  const LogLines quiet;  // collects warnings about skipped files
  std::set<Image> seen;
  const auto all = Disk(calls, calls.size()).finished;
  for (std::size_t cut = 0; cut <= calls.size(); ++cut) {
    const Disk disk(calls, cut);
    const std::size_t certain = disk.certain;
    disk.eachImage([&](const Image& image) {
      Image marked = image;
      marked["certain"] = std::to_string(certain);  // the same image may need a newer checkpoint
      if (!seen.insert(marked).second) return;
      ++result.images;
      const auto place = directory / "image";
      std::filesystem::remove_all(place);
      std::filesystem::create_directory(place);
      for (const auto& [name, bytes] : image) writeFile(place / name, bytes);
      std::optional<std::filesystem::path> newest;
      bool good = false;
      try {
        newest = newestCheckpoint(place, "checkpoint");
        good = certain == 0 && !newest;
      } catch (const FileError&) {  // all checkpoints are broken
      }
      // Expect the last finished checkpoint, or one that was begun after it.
      for (std::size_t c = certain == 0 ? 0 : certain - 1; newest && c < all.size(); ++c)
        good = good || (newest->filename() == all[c].first && readFile(*newest) == all[c].second);
      if (good && newest) MultiLayerNetwork::load(*newest);
      if (!good) ++result.lost;
    });
  }
  return result;
}

/// A training of three epochs with a checkpoint after every second iteration.
std::vector<Recorded> recordedTraining(std::int64_t keepLast) {
  const TemporaryDirectory directory;
  Tensor features = Tensor::empty({24, 3}), labels = Tensor::empty({24}, DType::Int64);
  for (std::int64_t i = 0; i < 72; ++i) features.data<float>()[i] = static_cast<float>(i * i % 7) - 3;
  for (std::int64_t i = 0; i < 24; ++i) labels.data<std::int64_t>()[i] = i % 2;
  InMemoryDataSetIterator data(features, labels, 8);
  MultiLayerNetwork model({.inputShape = {3}, .layers = {Output{.classes = 2}}});
  model.init();
  recorder().watch(directory.path());
  model.setListeners({std::make_shared<CheckpointListener>(
      CheckpointOptions{.directory = std::filesystem::canonical(directory.path()),
                        .everyIterations = 2,
                        .keepLast = keepLast})});
  model.fit(data, 2);
  return recorder().stop();
}

}  // namespace

TEST_CASE("after a power loss the last finished checkpoint is there, or the one being written") {
  for (const std::int64_t keepLast : {1, 2}) {
    CAPTURE(keepLast);
    const auto calls = recordedTraining(keepLast);
    const auto count = [&](Call call) { return std::ranges::count(calls, call, &Recorded::call); };
    CHECK((count(Call::Rename) >= 3 && count(Call::Remove) > 0));
    const Result result = replay(calls);
    MESSAGE(calls.size(), " calls, ", result.images, " images, ", result.lost, " without their checkpoint");
    CHECK(result.images > 50);
    CHECK(result.lost == 0);
    // Checks that the simulation detects a lost checkpoint if one of the two kinds of fsync() is missing.
    for (const Call missing : {Call::SyncFile, Call::SyncDirectory}) {
      if (missing == Call::SyncDirectory && keepLast > 1) continue;  // the previous checkpoint still exists
      auto unsafe = calls;
      if (missing == Call::SyncFile) {
        std::erase_if(unsafe, [](const Recorded& one) { return one.call == Call::SyncFile; });
      } else {
        // Only the one after each renaming, so that changes do not pile up: it comes one call too late.
        for (std::size_t i = 0; i + 1 < unsafe.size(); ++i)
          if (unsafe[i].call == Call::SyncDirectory) {
            std::swap(unsafe[i], unsafe[i + 1]);
            ++i;
          }
      }
      CHECK(replay(unsafe).lost > 0);
    }
  }
}
