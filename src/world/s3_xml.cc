#include "world/s3_xml.h"

#include <pugixml.hpp>

#include "world/http_headers.h"

namespace holdfast::world {
namespace {

constexpr std::size_t kXmlBytesMax = std::size_t{16} << 20U;

/// Elements by name alone: S3's put themselves into a namespace, most others' into none.
bool load(pugi::xml_document& document, std::string_view xml) {
  return xml.size() <= kXmlBytesMax &&
         document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8).status ==
             pugi::status_ok;
}

std::string child(const pugi::xml_node& node, const char* name) { return node.child(name).text().get(); }

}  // namespace

S3Error parse_s3_error(std::string_view xml) {
  pugi::xml_document document;
  if (!load(document, xml)) return {};
  const pugi::xml_node error = document.child("Error");
  return {child(error, "Code"), child(error, "Message")};
}

std::optional<S3Page> parse_s3_page(std::string_view xml) {
  pugi::xml_document document;
  if (!load(document, xml)) return std::nullopt;
  const pugi::xml_node list = document.child("ListBucketResult");
  if (!list) return std::nullopt;
  S3Page page;
  for (const pugi::xml_node& entry : list.children("Contents")) {
    const auto size = parse_count(child(entry, "Size"));
    std::string key = child(entry, "Key");
    if (!size || key.empty()) return std::nullopt;
    page.objects.push_back({std::move(key), *size, child(entry, "ETag")});
  }
  if (child(list, "IsTruncated") == "true") {
    page.next = child(list, "NextContinuationToken");
    if (page.next.empty()) return std::nullopt;
  }
  return page;
}

std::optional<S3Uploads> parse_s3_uploads(std::string_view xml) {
  pugi::xml_document document;
  if (!load(document, xml)) return std::nullopt;
  const pugi::xml_node list = document.child("ListMultipartUploadsResult");
  if (!list) return std::nullopt;
  S3Uploads page;
  for (const pugi::xml_node& entry : list.children("Upload")) {
    UnfinishedObject upload{child(entry, "Key"), child(entry, "UploadId")};
    if (upload.key.empty() || upload.upload.empty()) return std::nullopt;
    page.uploads.push_back(std::move(upload));
  }
  if (child(list, "IsTruncated") == "true") {
    page.next = {child(list, "NextKeyMarker"), child(list, "NextUploadIdMarker")};
    if (page.next.key.empty()) return std::nullopt;
  }
  return page;
}

std::string parse_upload_id(std::string_view xml) {
  pugi::xml_document document;
  if (!load(document, xml)) return "";
  return child(document.child("InitiateMultipartUploadResult"), "UploadId");
}

std::string format_parts(std::span<const S3Part> parts) {
  pugi::xml_document document;
  pugi::xml_node list = document.append_child("CompleteMultipartUpload");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    pugi::xml_node part = list.append_child("Part");
    part.append_child("PartNumber").text().set(i + 1);
    part.append_child("ETag").text().set(parts[i].etag.c_str());
    if (!parts[i].crc32c.empty()) part.append_child("ChecksumCRC32C").text().set(parts[i].crc32c.c_str());
  }
  struct Text final : pugi::xml_writer {
    std::string text;
    void write(const void* data, std::size_t size) override { text.append(static_cast<const char*>(data), size); }
  } out;
  document.save(out, "", pugi::format_raw | pugi::format_no_declaration);
  return std::move(out.text);
}

}  // namespace holdfast::world
