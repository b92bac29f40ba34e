import { createHash, timingSafeEqual } from "node:crypto";
import { request } from "node:https";
import type { TLSSocket } from "node:tls";
import {
  longestAnswer,
  nothingRead,
  type PowerController,
  type PowerDriver,
  uuidOf,
} from "../../core/ha/power/controller.ts";

/**
 * Redfish (DMTF DSP0266) over HTTPS, as much as reads and cuts the power of the one computer system that a controller has. Controllers have
 * certificates of their own, so the one that was shown at the registration is pinned; a redirect, another certificate, an answer that is too
 * long or makes no sense is nothing that was read.
 */
export const redfishDriver: PowerDriver = {
  read: async (controller, signal) => {
    try {
      const { system } = await systemOf(controller, signal);
      const power = system.PowerState === "On" ? "on" : system.PowerState === "Off" ? "off" : null;
      const uuid = typeof system.UUID === "string" ? uuidOf(system.UUID) : null;
      if (power === null) return nothingRead("the controller does not say that the power is on or off");
      return uuid === null ? nothingRead("the controller shows no system UUID") : { power, uuid, reason: null };
    } catch (error) {
      return nothingRead(error instanceof Unread ? error.message : "the controller does not answer");
    }
  },
  off: async (controller, signal) => {
    try {
      const { system, path } = await systemOf(controller, signal);
      const actions = isRecord(system.Actions) ? system.Actions["#ComputerSystem.Reset"] : undefined;
      const said = isRecord(actions) ? actions.target : undefined;
      // Where it is said, it is below the system: nothing is sent anywhere else.
      const target =
        typeof said === "string" && said.startsWith(`${path}/`) ? said : `${path}/Actions/ComputerSystem.Reset`;
      await ask(controller, signal, target, { ResetType: "ForceOff" });
    } catch {
      // That is found out by reading.
    }
  },
};

class Unread extends Error {}
type Fields = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const systems = "/redfish/v1/Systems";

/** The one system; of a controller with several none is meant. */
const systemOf = async (
  controller: PowerController,
  signal: AbortSignal,
): Promise<{ readonly system: Fields; readonly path: string }> => {
  const { Members: members } = await ask(controller, signal, systems);
  if (!Array.isArray(members) || members.length !== 1)
    throw new Unread("the controller has no computer system, or several");
  const [member] = members as readonly unknown[];
  const path = isRecord(member) ? member["@odata.id"] : undefined;
  if (typeof path !== "string" || !/^\/redfish\/v1\/Systems\/[\w.-]+$/.test(path))
    throw new Unread("the controller names its computer system in a way that is not understood");
  return { system: await ask(controller, signal, path), path };
};

const ask = (
  { address, user, password, fingerprint = "" }: PowerController,
  signal: AbortSignal,
  path: string,
  body?: Fields,
): Promise<Fields> =>
  new Promise((resolve, reject) => {
    const [host, port = "443"] = address.split(":");
    const sent = body === undefined ? "" : JSON.stringify(body);
    const asked = request({
      host,
      port: Number(port),
      path,
      signal,
      agent: false,
      method: body === undefined ? "GET" : "POST",
      // The pin is what says who it is.
      rejectUnauthorized: false,
      headers: {
        authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
        ...(body === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(sent) }),
      },
    });
    asked.on("socket", (socket) =>
      socket.once("secureConnect", () => {
        // Before this nothing was sent: neither the user's name nor the password.
        if (!isPinned(socket as TLSSocket, fingerprint))
          asked.destroy(new Unread("the controller has another certificate than the one that was registered"));
        else asked.end(sent);
      }),
    );
    asked.on("error", (error) =>
      reject(error.name === "AbortError" ? new Unread("the controller did not answer in time") : error),
    );
    asked.on("response", (answer) => {
      const chunks: Buffer[] = [];
      let length = 0;
      answer.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length > longestAnswer) asked.destroy(new Unread("the controller says more than anybody would read"));
        else chunks.push(chunk);
      });
      answer.on("error", reject);
      answer.on("end", () => {
        const { statusCode = 0 } = answer;
        if (statusCode === 401 || statusCode === 403)
          return reject(new Unread("the controller does not take this user and password"));
        if (statusCode < 200 || statusCode > 299) return reject(new Unread(`the controller answers ${statusCode}`));
        try {
          const value: unknown = length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString("utf8"));
          if (isRecord(value)) resolve(value);
          else reject(new Unread("the controller's answer makes no sense"));
        } catch {
          reject(new Unread("the controller's answer makes no sense"));
        }
      });
    });
  });

const isPinned = (socket: TLSSocket, fingerprint: string): boolean => {
  const { raw } = socket.getPeerCertificate();
  if (raw === undefined || !/^[0-9a-f]{64}$/.test(fingerprint)) return false;
  return timingSafeEqual(createHash("sha256").update(raw).digest(), Buffer.from(fingerprint, "hex"));
};
