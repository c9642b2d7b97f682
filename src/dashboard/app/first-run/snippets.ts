/** A program that sends a first event. */
export interface Snippet {
  /** The name of the language or tool. */
  name: string
  /** Returns the program; `url` is the server's, without a slash at the end. */
  toCode(url: string, key: string): string
}

/** The same event in several languages, without any package. */
export const SNIPPETS: readonly Snippet[] = [
  {
    // The shortest command. Its double quotes work in every shell.
    name: 'curl',
    toCode: (url, key) => `curl ${url}/v1/channels/hello \\
  -H "Authorization: Bearer ${key}" \\
  -d "🎉 It works"`,
  },
  {
    name: 'JavaScript',
    toCode: (url, key) => `const response = await fetch('${url}/v1/events', {
  method: 'POST',
  headers: {
    Authorization: 'Bearer ${key}',
    'Content-Type': 'application/json',
  },
  body: JSON.stringify({
    channelName: 'hello',
    title: 'It works',
    icon: '🎉',
  }),
})
console.log(response.status)`,
  },
  {
    name: 'Python',
    toCode: (url, key) => `import json, urllib.request

request = urllib.request.Request(
    "${url}/v1/events",
    data=json.dumps({"channelName": "hello", "title": "It works", "icon": "🎉"}).encode(),
    headers={
        "Authorization": "Bearer ${key}",
        "Content-Type": "application/json",
    },
)
print(urllib.request.urlopen(request, timeout=10).status)`,
  },
  {
    name: 'Go',
    toCode: (url, key) => `package main

import (
	"fmt"
	"net/http"
	"strings"
)

func main() {
	body := strings.NewReader(\`{"channelName": "hello", "title": "It works", "icon": "🎉"}\`)
	request, _ := http.NewRequest("POST", "${url}/v1/events", body)
	request.Header.Set("Authorization", "Bearer ${key}")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	fmt.Println(response.Status)
}`,
  },
  {
    name: 'Ruby',
    toCode: (url, key) => `require "json"
require "net/http"

response = Net::HTTP.post(
  URI("${url}/v1/events"),
  JSON.generate(channelName: "hello", title: "It works", icon: "🎉"),
  "Authorization" => "Bearer ${key}",
  "Content-Type" => "application/json",
)
puts response.code`,
  },
  {
    name: 'PHP',
    toCode: (url, key) => `<?php
echo file_get_contents('${url}/v1/events', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => ['Authorization: Bearer ${key}', 'Content-Type: application/json'],
    'content' => json_encode(['channelName' => 'hello', 'title' => 'It works', 'icon' => '🎉']),
]]));`,
  },
]
