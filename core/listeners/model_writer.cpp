#include "muster/core/listeners/model_writer.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "muster/core/base/mutex.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/detail/file_shortage.h"

namespace muster {
namespace {

/// A file's place in the order of the process.
class Turn {
 public:
  Turn() : before_(enqueue(over_.get_future().share())) {}
  ~Turn() { end(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Waits for the files before this one, calls `write`, and lets the next file begin.
  template <typename Write>
  void take(Write write) {
    struct End {
      Turn& turn;
      ~End() { turn.end(); }
    } const atEnd{*this};
    if (before_.valid()) before_.wait();
    write();
  }

 private:
  /// Makes `turn` the last one in the order. @return the one before it, if any.
  static std::shared_future<void> enqueue(std::shared_future<void> turn) {
    static Mutex mutex;
    static std::shared_future<void> last MUSTER_GUARDED_BY(mutex);
    const Lock lock(mutex);
    return std::exchange(last, std::move(turn));
  }
  void end() {
    if (!std::exchange(ended_, true)) over_.set_value();
  }

  bool ended_ = false;
  std::promise<void> over_;
  std::shared_future<void> before_;
};

}  // namespace

void ModelWriter::write(Network& network, const TrainingState& training, const ModelNotes& notes,
                        const std::filesystem::path& path) {
  finish();
  detail::onFile("save", path, [&] {
    { const AtomicFile unused(path); }  // throws now if the file cannot be written
    if (snapshot_)
      snapshot_->take(network, training, notes);
    else
      snapshot_ = std::make_shared<ModelSnapshot>(network, training, notes);
    const auto write = [snapshot = snapshot_, path, turn = std::make_shared<Turn>()] {
      turn->take([&] { snapshot->write(path); });
    };
    try {
      written_ = std::async(std::launch::async, write);
    } catch (const std::system_error&) {  // no thread available: write here
      std::packaged_task<void()> task(write);
      written_ = task.get_future();
      task();
    }
  });
}

bool ModelWriter::busy() const {
  return begun() && written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void ModelWriter::finish() {
  if (begun()) written_.get();
}

}  // namespace muster
