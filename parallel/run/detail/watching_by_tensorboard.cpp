#include "muster/core/base/error.h"
#include "muster/core/listeners/watch/tensorboard/tensorboard_listener.h"
#include "muster/parallel/run/detail/watching.h"

namespace muster::detail {
namespace {

class TensorBoardWatcher final : public Watcher {
 public:
  TensorBoardWatcher(const WatchOptions& options, std::shared_ptr<const EvaluationListener> tests)
      : listener_(std::make_shared<TensorBoardListener>(
            options.tensorBoard,
            TensorBoardOptions{.shared = options.shared, .evaluation = std::move(tests)})) {}

  Listeners listeners() override { return {listener_, listener_->workers()}; }
  void text(std::string_view name, std::string_view text) override {
    // With four spaces, Markdown keeps the lines unchanged.
    std::string block = "    ";
    for (const char c : text) block += c == '\n' ? std::string("\n    ") : std::string(1, c);
    listener_->text(name, block);
  }
  void options(const std::vector<HyperParameter>& options, const std::vector<std::string>& results,
               std::string_view group) override {
    listener_->hyperParameters(options, results, group);
  }
  void result(std::string_view name, double value) override { listener_->result(name, value); }
  void failed(const std::exception_ptr& failure) override {
    listener_->text("ended early", describe(failure));
  }
  std::string still(const std::string&) override { return {}; }

 private:
  std::shared_ptr<TensorBoardListener> listener_;
};

}  // namespace

bool tensorBoardBuilt() {
  return true;
}

std::unique_ptr<Watcher> tensorBoardWatcher(const WatchOptions& options,
                                            std::shared_ptr<const EvaluationListener> tests) {
  return std::make_unique<TensorBoardWatcher>(options, std::move(tests));
}

}  // namespace muster::detail
