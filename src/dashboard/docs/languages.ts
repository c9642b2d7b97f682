/** A piece of a program in one language, with nothing to install beyond the language itself. */
export interface Snippet {
  id: string
  language: string
  text: string
}

const BODY = `{"channelName": "payments", "title": "New payment", "icon": "💰"}`

/** Sends a first event, in eight languages. */
export function listFirstEvents(baseUrl: string): Snippet[] {
  const url = `${baseUrl}/v1/events`
  return [
    {
      id: 'curl',
      language: 'curl',
      text: `curl ${url} \\
  -H 'Authorization: Bearer YOUR_API_KEY' \\
  -H 'Content-Type: application/json' \\
  -d '${BODY}'`,
    },
    {
      id: 'javascript',
      language: 'JavaScript',
      text: `const response = await fetch('${url}', {
  method: 'POST',
  headers: {
    Authorization: 'Bearer YOUR_API_KEY',
    'Content-Type': 'application/json',
  },
  body: JSON.stringify({ channelName: 'payments', title: 'New payment', icon: '💰' }),
})
console.log(response.status) // 201`,
    },
    {
      id: 'python',
      language: 'Python',
      text: `import json, urllib.request

request = urllib.request.Request(
    "${url}",
    data=json.dumps({"channelName": "payments", "title": "New payment", "icon": "💰"}).encode(),
    headers={"Authorization": "Bearer YOUR_API_KEY", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request, timeout=10) as response:
    print(response.status)  # 201`,
    },
    {
      id: 'go',
      language: 'Go',
      text: `package main

import (
	"fmt"
	"net/http"
	"strings"
)

func main() {
	body := strings.NewReader(\`${BODY}\`)
	request, _ := http.NewRequest("POST", "${url}", body)
	request.Header.Set("Authorization", "Bearer YOUR_API_KEY")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode) // 201
}`,
    },
    {
      id: 'ruby',
      language: 'Ruby',
      text: `require "json"
require "net/http"

response = Net::HTTP.post(
  URI("${url}"),
  JSON.generate(channelName: "payments", title: "New payment", icon: "💰"),
  "Authorization" => "Bearer YOUR_API_KEY",
  "Content-Type" => "application/json",
)
puts response.code # 201`,
    },
    {
      id: 'php',
      language: 'PHP',
      text: `<?php
$answer = file_get_contents('${url}', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => ['Authorization: Bearer YOUR_API_KEY', 'Content-Type: application/json'],
    'content' => json_encode(['channelName' => 'payments', 'title' => 'New payment', 'icon' => '💰']),
    'timeout' => 10,
]]));
echo $answer;`,
    },
    {
      id: 'java',
      language: 'Java',
      text: `import java.net.URI;
import java.net.http.*;

class FirstEvent {
  public static void main(String[] args) throws Exception {
    var body = """
        ${BODY}""";
    var request = HttpRequest.newBuilder(URI.create("${url}"))
        .header("Authorization", "Bearer YOUR_API_KEY")
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(body))
        .build();
    var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(response.statusCode()); // 201
  }
}`,
    },
    {
      id: 'csharp',
      language: 'C#',
      text: `using System.Net.Http.Headers;
using System.Net.Http.Json;

using var client = new HttpClient { Timeout = TimeSpan.FromSeconds(10) };
client.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", "YOUR_API_KEY");
var response = await client.PostAsJsonAsync(
    "${url}",
    new { channelName = "payments", title = "New payment", icon = "💰" });
Console.WriteLine((int)response.StatusCode); // 201`,
    },
  ]
}

/** Verifies the signature of a webhook that has arrived. */
export function listVerifications(): Snippet[] {
  return [
    {
      id: 'verify-javascript',
      language: 'JavaScript',
      text: `import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.WEBHOOK_SECRET) // whsec_…

export async function receive(request) {
  try {
    const { type, data } = webhook.verify(await request.text(), Object.fromEntries(request.headers))
    console.log(type, data.title) // event.created
    return new Response(null, { status: 204 })
  } catch {
    return new Response(null, { status: 401 })
  }
}`,
    },
    {
      id: 'verify-python',
      language: 'Python',
      text: `import base64, hashlib, hmac, time

def is_genuine(secret: str, headers, body: bytes) -> bool:
    """Headers by their names in small letters; the body as it arrived."""
    sent_at = headers["webhook-timestamp"]
    if abs(time.time() - int(sent_at)) > 300:
        return False
    signed = f"{headers['webhook-id']}.{sent_at}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in headers["webhook-signature"].split())`,
    },
    {
      id: 'verify-go',
      language: 'Go',
      text: `func isGenuine(secret string, header http.Header, body []byte) bool {
	sentAt := header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(sentAt, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("webhook-id"), sentAt, body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, one := range strings.Fields(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(one), []byte(expected)) {
			return true
		}
	}
	return false
}`,
    },
    {
      id: 'verify-ruby',
      language: 'Ruby',
      text: `require "base64"
require "openssl"

def genuine?(secret, headers, body)
  sent_at = headers["webhook-timestamp"]
  return false if (Time.now.to_i - sent_at.to_i).abs > 300
  key = Base64.decode64(secret.delete_prefix("whsec_"))
  signed = "#{headers["webhook-id"]}.#{sent_at}.#{body}"
  expected = "v1,#{Base64.strict_encode64(OpenSSL::HMAC.digest("SHA256", key, signed))}"
  headers["webhook-signature"].split.any? { |one| OpenSSL.secure_compare(one, expected) }
end`,
    },
    {
      id: 'verify-php',
      language: 'PHP',
      text: `<?php
function isGenuine(string $secret, array $headers, string $body): bool
{
    $sentAt = $headers['webhook-timestamp'];
    if (abs(time() - (int) $sentAt) > 300) {
        return false;
    }
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $signed = "{$headers['webhook-id']}.$sentAt.$body";
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    foreach (explode(' ', $headers['webhook-signature']) as $one) {
        if (hash_equals($expected, $one)) {
            return true;
        }
    }
    return false;
}`,
    },
  ]
}
