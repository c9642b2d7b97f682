class Tidings < Formula
  desc "Self-hosted event service with a live feed, push and webhooks"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "AGPL-3.0-only"

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/tidings-darwin-arm64"
      sha256 "@SHA256 tidings-darwin-arm64@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/tidings-darwin-x64"
      sha256 "@SHA256 tidings-darwin-x64@"
    end
  end
  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/tidings-linux-arm64"
      sha256 "@SHA256 tidings-linux-arm64@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/tidings-linux-x64-baseline"
      sha256 "@SHA256 tidings-linux-x64-baseline@"
    end
  end

  def install
    bin.install Dir["tidings-*"].first => "tidings"
  end

  service do
    run [opt_bin/"tidings", "serve"]
    environment_variables DATA_DIR: var/"tidings"
    keep_alive true
    log_path var/"log/tidings.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tidings version")
  end
end
