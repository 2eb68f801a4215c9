#include "muster/core/listeners/watch/page/page_inbox.h"

namespace muster {

PageInbox::PageInbox() {
  content_.points.reserve(kRoom);
}

void PageInbox::point(std::string_view name, std::int64_t step, double value) {
  const Lock lock(mutex_);
  if (content_.points.size() == kRoom) {
    ++content_.lost;
    return;
  }
  auto known = names_.find(name);
  if (known == names_.end()) {
    known = names_.emplace(std::string(name), static_cast<std::int32_t>(names_.size())).first;
    content_.newNames.emplace_back(name);
  }
  content_.points.push_back({known->second, step, value});
}

void PageInbox::text(std::string_view name, std::string_view text) {
  const Lock lock(mutex_);
  content_.texts.emplace_back(name, text);
}

void PageInbox::histograms(PageHistograms histograms) {
  const Lock lock(mutex_);
  content_.histograms = std::move(histograms);
}

void PageInbox::progress(const PageProgress& progress) {
  const Lock lock(mutex_);
  content_.progress = progress;
}

void PageInbox::network(std::string json) {
  const Lock lock(mutex_);
  content_.network = std::move(json);
}

void PageInbox::take(Content& content) {
  content.newNames.clear();
  content.points.clear();
  content.points.reserve(kRoom);
  content.texts.clear();
  content.histograms.reset();
  content.progress.reset();
  content.network.clear();
  content.lost = 0;
  const Lock lock(mutex_);
  std::swap(content, content_);
}

}  // namespace muster
