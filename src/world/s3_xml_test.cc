#include "world/s3_xml.h"

#include <gtest/gtest.h>

namespace holdfast::world {
namespace {

TEST(S3Xml, AnErrorHasACodeAndWords) {
  const S3Error error = parse_s3_error(
      "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>It &lt;is&gt; gone</Message></Error>");
  EXPECT_EQ(error.code, "NoSuchKey");
  EXPECT_EQ(error.message, "It <is> gone");
}

TEST(S3Xml, WhatIsNoErrorHasNoCode) {
  for (const char* text : {"", "<html><body>502</body></html>", "<Error><Code>Cut", "{\"error\":1}", "<Error/>"}) {
    EXPECT_EQ(parse_s3_error(text).code, "") << text;
  }
}

constexpr const char* kPage = R"(<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;2=</NextContinuationToken>
  <Contents><Key>a b</Key><Size>12</Size><ETag>&quot;e1&quot;</ETag></Contents>
  <Contents><Key>c</Key><Size>0</Size></Contents></ListBucketResult>)";

TEST(S3Xml, APageListsObjectsAndWhereToGoOn) {
  const auto page = parse_s3_page(kPage);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0].key, "a b");
  EXPECT_EQ(page->objects[0].size, 12U);
  EXPECT_EQ(page->objects[0].etag, "\"e1\"");
  EXPECT_EQ(page->objects[1].size, 0U);
  EXPECT_EQ(page->next, "t&2=");
}

TEST(S3Xml, APageThatMakesNoSenseIsNone) {
  for (const char* text :
       {"", "<Other/>", "<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"}) {
    EXPECT_FALSE(parse_s3_page(text)) << text;
  }
  EXPECT_TRUE(parse_s3_page("<ListBucketResult/>"));
}

TEST(S3Xml, UploadsAreListedAndWhereToGoOn) {
  const auto page = parse_s3_uploads(
      "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>b</NextKeyMarker>"
      "<NextUploadIdMarker>2</NextUploadIdMarker><Upload><Key>a b</Key><UploadId>u1</UploadId></Upload>"
      "</ListMultipartUploadsResult>");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->uploads.size(), 1U);
  EXPECT_EQ(page->uploads[0].key, "a b");
  EXPECT_EQ(page->uploads[0].upload, "u1");
  EXPECT_EQ(page->next.key, "b");
  EXPECT_EQ(page->next.upload, "2");
}

TEST(S3Xml, UploadsThatMakeNoSenseAreNone) {
  for (const char* text :
       {"", "<Other/>", "<ListMultipartUploadsResult><Upload><Key>a</Key></Upload></ListMultipartUploadsResult>",
        "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>"}) {
    EXPECT_FALSE(parse_s3_uploads(text)) << text;
  }
  EXPECT_TRUE(parse_s3_uploads("<ListMultipartUploadsResult/>"));
}

TEST(S3Xml, AnUploadHasAnId) {
  EXPECT_EQ(parse_upload_id("<InitiateMultipartUploadResult><UploadId>u-1</UploadId></InitiateMultipartUploadResult>"),
            "u-1");
  EXPECT_EQ(parse_upload_id("<InitiateMultipartUploadResult/>"), "");
}

TEST(S3Xml, PartsAreNumberedFromOne) {
  EXPECT_EQ(format_parts(std::vector<S3Part>{{"\"a\"", "AAAAAA=="}, {"b<", ""}}),
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag><ChecksumCRC32C>AAAAAA==</"
            "ChecksumCRC32C></Part>"
            "<Part><PartNumber>2</PartNumber><ETag>b&lt;</ETag></Part></CompleteMultipartUpload>");
}

}  // namespace
}  // namespace holdfast::world
